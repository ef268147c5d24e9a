"""Capture (CCR): finish only the operators that run now; what is pending of the epoch goes with the state.

The others go on where the epoch was, from the captured blocks. All operators are restored at once.
"""

from springtide.migration.phase import Commit, Init, Point, Prepare, Swap
from springtide.migration.strategy import StoppingStrategy

RESEND_S = 1.0
CAPTURE = StoppingStrategy(
    "capture",
    "finish the running operators, store the state with what is pending, replace all workers",
    (Prepare(Point.OPERATORS), Commit(), Swap(), Init(in_order=False, resend_s=RESEND_S)),
)
