"""Restart (DSM, Storm's rebalance): kill at once, go back to the last checkpoint, repeat what came after it."""

from springtide.migration.phase import Init, Point, Prepare, Swap
from springtide.migration.strategy import StoppingStrategy

RESEND_S = 30.0
"""Storm's timeout for an answer."""
RESTART = StoppingStrategy(
    "restart",
    "kill all workers at once and repeat what came after the last checkpoint",
    (Prepare(Point.ANYWHERE), Swap(), Init(in_order=True, resend_s=RESEND_S)),
)
