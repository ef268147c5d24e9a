"""The controller that sheds: what apps bring to a cycle, what is decided, its log."""
