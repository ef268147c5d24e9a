"""The control API of a running app: routes, who may ask, where it is found, its client."""
