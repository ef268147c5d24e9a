"""What experiments share: contestants in processes of their own, trials, findings."""
