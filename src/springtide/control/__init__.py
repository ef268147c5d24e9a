"""The control room: what can be asked of a running app, and who may ask."""
