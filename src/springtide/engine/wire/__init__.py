"""What goes between the driver and its tasks: commit records, errors, signals to try again."""
