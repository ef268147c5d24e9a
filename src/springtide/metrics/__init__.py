"""What is measured: the epoch report and its parts."""
