"""Restart (DSM, Storm's rebalance): kill at once, go back to the last checkpoint, repeat what came after it."""

from springtide.migration.phase import Init, Phase, Point, Prepare, Swap

RESEND_S = 30.0
"""Storm's timeout for an answer."""
RESTART: tuple[Phase, ...] = (Prepare(Point.ANYWHERE), Swap(), Init(in_order=True, resend_s=RESEND_S))
