"""Conditions that people write as SQL text: read on the driver, plain data on the way, evaluated by Arrow."""
