"""Runs an app on Spark. The rooms are in the order of their imports in docs/architecture.md."""
