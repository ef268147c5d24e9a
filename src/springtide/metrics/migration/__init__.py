"""How a migration disturbed an app: its measures, from epoch reports."""
