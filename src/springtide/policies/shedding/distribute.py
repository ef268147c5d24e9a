"""CPU goes to the instances on a machine, and accuracy to queries (Algorithm 3, and lines 15 to 19 of Algorithm 1).

The highest priority has its turn first. In a turn only what its queries ask for counts, also for a task that feeds
others too: in the listing such a task gets all in the turn of its highest query, and a low query would take CPU from
that one.

An even share for each instance gives more to a task than it can use if another task of the same query gets too little.
The listing leaves that unused; here it is used by what can still rise, see `leftover`.
"""

from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints, lowest
from springtide.policies.shedding.cpu import obtained_accuracy, slack
from springtide.policies.shedding.graph import Graph
from springtide.policies.shedding.leftover import use_the_rest
from springtide.policies.shedding.turn import Turn, turn_of

CLOSE = 1e-9
"""Cores that do not matter."""


@dataclass
class Rise:
    """Accuracies on their way up; one decision's own working memory."""

    graph: Graph
    costs: Floats
    """By task: the cores that full accuracy takes an instance."""
    task: Ints
    """By instance."""
    place: Ints
    """By instance: its machine."""
    room: Floats
    """By machine: cores that nobody has yet."""
    levels: Floats
    """By query: the accuracy that it has so far."""
    base: Floats = field(init=False)
    """By task: the accuracy that it has CPU for."""
    held_by: Ints = field(init=False)
    """By query: the machine and the task that kept it from rising further, or -1."""

    def __post_init__(self) -> None:
        self.base = self.graph.pairs.highest(self.levels)
        by_machine = np.argsort(self.place, kind="stable")
        self.task, self.place = self.task[by_machine], self.place[by_machine]
        self.held_by = np.full((len(self.levels), 2), -1)

    def to(self, ceilings: Floats) -> None:
        """Let all queries rise as far as there is room, none above its ceiling, those of high priority first."""
        for pairs in self.graph.turns:
            turn = turn_of(pairs, self.task, self.place, self.costs, self.base, self.room)
            desired = np.maximum(ceilings, self.levels)
            if self._distribute(turn, desired):
                use_the_rest(turn, desired, self.levels, ceilings)
            self.room = np.maximum(0.0, self.room - turn.used(turn.asks(desired)))
            self.base[pairs.tasks] = np.maximum(turn.base, pairs.highest(desired))
            self.levels[pairs.query] = desired[pairs.query]
        # Rows that all tasks of a query work on anyway, for others, are not dropped.
        base = np.where(self.costs > 0, self.base, np.inf)
        free = lowest(base[self.graph.pairs.task], self.graph.pairs.query, len(self.levels))
        self.levels = np.maximum(self.levels, np.minimum(free, ceilings))

    def _distribute(self, turn: Turn, desired: Floats) -> bool:
        """Lower what is desired to what there is room for, machines of high slack first; whether some is shared."""
        asks = turn.asks(desired)
        slacks = slack(turn.used(asks), np.diff(turn.first), self.room)
        self._deny(turn, asks, desired)
        short = np.flatnonzero((slacks > CLOSE) & (self.room > CLOSE))
        for machine in short[np.argsort(-slacks[short], kind="stable")].tolist():
            self._evenly(machine, turn, desired)
        return len(short) > 0

    def _deny(self, turn: Turn, asks: Floats, desired: Floats) -> None:
        """Algorithm 3 for the machines that have nothing left, all at once."""
        denied = (self.room <= CLOSE)[turn.machine] & (asks > CLOSE)[turn.instance]
        if denied.any():
            accuracy = np.where(denied, turn.base[turn.instance], np.inf)
            self._hold_down(turn, slice(0, len(denied)), accuracy, desired)

    def _evenly(self, machine: int, turn: Turn, desired: Floats) -> None:
        """Algorithm 3: who asks for least is served first, and what it leaves is shared by the others."""
        here, asks = turn.on(machine, desired)
        if asks.sum() <= self.room[machine] + CLOSE:
            return
        wanted = np.sort(asks)
        served = np.cumsum(wanted) - wanted
        even = (self.room[machine] - served) / np.arange(len(wanted), 0, -1)
        too_much = wanted > even + CLOSE
        given = max(0.0, float(even[too_much.argmax()]))
        tasks = turn.instance[here]
        base = turn.base[tasks]
        more = obtained_accuracy(np.full(len(asks), given), turn.cost[tasks], base)
        self._hold_down(turn, here, np.where(asks > given + CLOSE, base + more, np.inf), desired)

    def _hold_down(self, turn: Turn, instances: slice, accuracy: Floats, desired: Floats) -> None:
        """Lower the queries of instances to what these are good for."""
        pairs = slice(turn.first_query[instances.start], turn.first_query[instances.stop])
        query, which = turn.query[pairs], turn.whose[pairs]
        most = accuracy[which - instances.start]
        lowered = most < desired[query]
        np.minimum.at(desired, query, most)
        cause = np.flatnonzero(lowered & (most == desired[query]))
        held, by = query[cause], which[cause]
        self.held_by[held, 0] = turn.machine[by]
        self.held_by[held, 1] = turn.pairs.tasks[turn.instance[by]]
