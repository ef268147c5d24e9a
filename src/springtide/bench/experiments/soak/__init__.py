"""Whether an app can run for weeks."""
