"""The controller that sheds: how long a cycle takes, how well it knows what comes in."""
