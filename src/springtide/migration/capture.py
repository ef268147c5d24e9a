"""Capture (CCR): finish only the operators that run now; what is pending of the epoch goes with the state.

The others go on where the epoch was, from the captured blocks. All operators are restored at once.
"""

from springtide.migration.phase import Commit, Init, Phase, Point, Prepare, Swap

RESEND_S = 1.0
CAPTURE: tuple[Phase, ...] = (Prepare(Point.OPERATORS), Commit(), Swap(), Init(in_order=False, resend_s=RESEND_S))
