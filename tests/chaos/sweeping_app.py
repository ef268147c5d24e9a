"""The app on several workers, with a sweep for orphans every few epochs, so that a test sees some."""

import sys

import cluster_app

from springtide.blocks import collect

SWEEP_EVERY = 3

if __name__ == "__main__":
    collect.SWEEP_EVERY = SWEEP_EVERY
    sys.exit(cluster_app.main())
