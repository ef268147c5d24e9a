"""What this machine has and lacks for running apps: each check is a small function that returns findings."""
