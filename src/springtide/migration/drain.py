"""Drain (DCR): finish the epoch in flight, store the state just in time, swap the workers, restore, resume.

Rows of before and after are never mixed: between the last old epoch and the first new one nothing is in flight.
"""

from springtide.migration.phase import Commit, Init, Point, Prepare, Swap
from springtide.migration.strategy import StoppingStrategy

RESEND_S = 1.0
DRAIN = StoppingStrategy(
    "drain",
    "finish the epoch in flight, then store the state and replace all workers",
    (Prepare(Point.EPOCHS), Commit(), Swap(), Init(in_order=True, resend_s=RESEND_S)),
)
