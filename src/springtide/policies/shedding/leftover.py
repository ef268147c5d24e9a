"""What even shares leave unused: queries rise on it in proportion to what they got, until their machines are full."""

import numpy as np

from springtide.policies.shedding.arrays import Floats, highest, lowest
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
    pairs, queries = turn.pairs, turn.pairs.queries
    query, task, size = pairs.among_queries, pairs.task, len(queries)
    wanted, ceiling = desired[queries], ceilings[queries]
    rising = wanted - levels[queries]
    most = turn.base.copy()
    for _ in range(ROUNDS):
        rising[wanted >= ceiling - WORTH] = 0.0
        now, speed = wanted[query], rising[query]
        np.maximum.at(most, task, now)
        cores = most * turn.cost
        # A task follows the highest of its queries: others rise freely up to there, and it no faster than the fastest.
        below = most[task] - now
        leads = below <= WORTH
        steep = turn.cost * highest(speed * leads, task, len(most)) * (cores < CORE)
        left = np.maximum(0.0, turn.room - turn.used(np.minimum(cores, CORE) - turn.has))
        slope = turn.used(steep)
        steps = np.divide(left, slope, out=np.full(len(left), FAR), where=slope > CLOSE)
        of_task = np.where(steep > 0, lowest(steps[turn.machine], turn.instance, len(most)), FAR)
        limit = np.where(leads, of_task[task] * speed, below)
        more = np.minimum(lowest(limit, query, size, FAR), ceiling - wanted) * (rising > 0)
        rising[more <= CLOSE] = 0.0
        wanted += more
        if not (more > WORTH).any():
            break
    desired[queries] = wanted
