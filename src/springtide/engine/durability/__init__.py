"""What the checkpoint says has happened, and how far back the app can go."""
