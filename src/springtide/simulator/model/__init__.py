"""The modelled cluster: arrivals, epochs, placement, losses, migrations."""
