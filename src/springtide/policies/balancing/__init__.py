"""Which slices belong on which worker."""
