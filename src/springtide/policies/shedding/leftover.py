"""What even shares leave unused: queries rise on it in proportion to what they got, until their machines are full."""

import numpy as np

from springtide.policies.shedding.arrays import Floats, lowest
from springtide.policies.shedding.cpu import CORE
from springtide.policies.shedding.turn import Turn

ROUNDS = 8
"""How often queries may rise; each time some machine is full afterwards, or some query has all it wants."""
WORTH = 2e-3
"""Less accuracy than this is not worth another round."""
CLOSE = 1e-9
FAR = 1e9
"""More than anybody can rise."""


def use_the_rest(turn: Turn, desired: Floats, levels: Floats, ceilings: Floats) -> None:
    """Raise `desired` in place, above the levels before this turn, while there is room on all machines of a query."""
    pairs = turn.pairs
    gained = np.zeros(len(desired))
    gained[pairs.query] = (desired - levels)[pairs.query]
    for _ in range(ROUNDS):
        rising = np.where(desired < ceilings - WORTH, gained, 0.0)
        most = np.maximum(pairs.highest(desired), turn.base)
        # A task follows the highest of its queries: others rise freely up to there, and it no faster than the fastest.
        below = most[pairs.task] - desired[pairs.query]
        leads = below <= WORTH
        fastest = np.maximum.reduceat(np.where(leads, rising[pairs.query], 0.0), pairs.start)
        steep = np.where(most * turn.cost < CORE, turn.cost * fastest, 0.0)
        left = turn.room - turn.used(turn.asks(desired))
        slope = turn.used(steep)
        steps = np.divide(np.maximum(left, 0.0), slope, out=np.full(len(left), FAR), where=slope > CLOSE)
        of_task = lowest(np.where(steep[turn.instance] > 0, steps[turn.machine], FAR), turn.instance, len(most))
        step = lowest(np.where(leads, of_task[pairs.task], FAR), pairs.query, len(desired), FAR)
        free = lowest(np.where(leads, FAR, below), pairs.query, len(desired), FAR)
        more = np.minimum(np.minimum(step * rising, free), np.maximum(ceilings - desired, 0.0)) * (rising > 0)
        gained[more <= CLOSE] = 0.0
        desired += more
        if not (more > WORTH).any():
            return
