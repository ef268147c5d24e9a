"""The same plans, policies and migrations on a modelled cluster."""
