"""What even shares leave unused: queries rise on it in proportion to what they got, until their machines are full."""

import numpy as np

from springtide.policies.shedding.arrays import Floats, lowest
from springtide.policies.shedding.turn import Turn

ROUNDS = 8
"""How often queries may rise; each time some machine is full afterwards, or some query has all it wants."""
WORTH = 1e-3
"""Less accuracy than this is not worth another round."""
CLOSE = 1e-9


def use_the_rest(turn: Turn, desired: Floats, levels: Floats, ceilings: Floats) -> None:
    """Raise `desired` in place, above the levels before this turn, while there is room on all machines of a query."""
    pairs = turn.pairs
    may_rise = np.zeros(len(desired), dtype=bool)
    may_rise[pairs.query] = True
    for _ in range(ROUNDS):
        asks = turn.asks(desired)
        left = turn.room - turn.used(asks)
        gained = desired - levels
        full = (left <= CLOSE)[turn.machine] & (asks[turn.instance] > 0)
        stuck = np.zeros(len(asks), dtype=bool)
        stuck[turn.instance[full]] = True
        may_rise[pairs.query[stuck[pairs.task]]] = False
        may_rise &= (desired < ceilings - WORTH) & (gained > 0)
        if not may_rise.any():
            return
        rising = np.zeros(len(asks), dtype=bool)
        rising[pairs.task[may_rise[pairs.query]]] = True
        used = turn.used(np.where(rising, asks, 0.0))
        factors = 1 + np.divide(left, used, out=np.full(len(left), np.inf), where=used > CLOSE)
        of_task = lowest(factors[turn.machine], turn.instance, len(asks))
        of_task[asks <= 0] = np.inf
        of_query = lowest(of_task[pairs.task], pairs.query, len(desired))
        risen = np.minimum(ceilings, levels + np.where(gained > 0, of_query, 1.0) * gained)
        next_ = np.where(may_rise, risen, desired)
        # A task follows the highest of its queries, which may cost more than in proportion: such ones stay.
        over = turn.used(turn.asks(next_)) > turn.room + CLOSE
        too_far = np.zeros(len(asks), dtype=bool)
        too_far[turn.instance[over[turn.machine]]] = True
        back = pairs.query[too_far[pairs.task]]
        next_[back], may_rise[back] = desired[back], False
        desired[:] = next_
