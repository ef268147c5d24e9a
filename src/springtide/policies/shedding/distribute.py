"""CPU goes to the instances on a machine, and accuracy to queries (Algorithm 3, and lines 15 to 19 of Algorithm 1).

The highest priority has its turn first. In a turn only what its queries ask for counts, also for a task that feeds
others too: in the listing such a task gets all in the turn of its highest query, and a low query would take CPU from
that one.

An even share for each instance gives more to a task than it can use if another task of the same query gets too little.
The listing takes the machines with the highest slack first, so that less of this happens, and leaves the rest unused.
Here all machines have their turn at once, and what can still rise uses the rest, see `leftover`.
"""

from dataclasses import dataclass, field

import numpy as np

from springtide.policies.shedding.arrays import Floats, Ints
from springtide.policies.shedding.cpu import CORE, obtained_accuracy, slack
from springtide.policies.shedding.graph import TaskGraph
from springtide.policies.shedding.leftover import use_the_rest
from springtide.policies.shedding.turn import Turn, turn_of

CLOSE = 1e-9
"""Cores that do not matter."""


@dataclass
class Rise:
    """Accuracies on their way up; one decision's own working memory."""

    graph: TaskGraph
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
    turns: list[Turn] = field(init=False)
    """By priority, the highest first."""
    held_by: Ints = field(init=False)
    """By query: the machine and the task that kept it from rising further, or -1."""

    def __post_init__(self) -> None:
        self.base = self.graph.pairs.highest(self.levels)
        by_machine = np.argsort(self.place, kind="stable")
        task, place = self.task[by_machine], self.place[by_machine]
        self.turns = [turn_of(pairs, task, place, len(self.room), self.costs) for pairs in self.graph.turns]
        self.held_by = np.full((len(self.levels), 2), -1)

    def to(self, ceilings: Floats) -> None:
        """Let all queries rise as far as there is room, none above its ceiling, those of high priority first."""
        for turn in self.turns:
            turn.begin(self.base, self.room)
            pairs = turn.pairs
            desired = np.maximum(ceilings, self.levels)
            if self._distribute(turn, desired):
                use_the_rest(turn, desired, self.levels, ceilings)
            self.room = np.maximum(0.0, self.room - turn.used(turn.asks(desired)))
            self.base[pairs.tasks] = np.maximum(turn.base, pairs.highest(desired))
            self.levels[pairs.query] = desired[pairs.query]

    def _distribute(self, turn: Turn, desired: Floats) -> bool:
        """Algorithm 3: lower what is desired to what there is room for; whether there is not enough for all."""
        asks = turn.asks(desired)
        slacks = slack(turn.used(asks), np.diff(turn.first), self.room)
        if not (slacks > CLOSE).any():
            return False
        given = _even_shares(turn, asks)[turn.machine]
        base, cost, ask = turn.base[turn.instance], turn.cost[turn.instance], asks[turn.instance]
        more = obtained_accuracy(np.minimum(given, ask), cost, base)
        self._hold_down(turn, np.where(ask > given + CLOSE, base + more, np.inf), desired)
        return True

    def _hold_down(self, turn: Turn, accuracy: Floats, desired: Floats) -> None:
        """Lower queries to what their instances are good for, and note whose fault it is."""
        most = accuracy[turn.whose]
        lowered = most < desired[turn.query]
        np.minimum.at(desired, turn.query, most)
        cause = np.flatnonzero(lowered & (most == desired[turn.query]))
        held, by = turn.query[cause], turn.whose[cause]
        self.held_by[held, 0] = turn.machine[by]
        self.held_by[held, 1] = turn.pairs.tasks[turn.instance[by]]


def _even_shares(turn: Turn, asks: Floats) -> Floats:
    """By machine: the most that an instance gets, if who asks for least is served first and leaves the rest."""
    ask = asks[turn.instance]
    wanted = ask[np.argsort(2 * CORE * turn.machine + ask)]  # Machine by machine: nobody asks for more than a core.
    before = np.cumsum(wanted) - wanted
    start, end = turn.first[turn.machine], turn.first[turn.machine + 1]
    served = before - before[start]
    even = (turn.room[turn.machine] - served) / (end - np.arange(len(wanted)))
    # The first one that gets less than it asks for tells what all later ones get.
    short = np.flatnonzero(wanted > even + CLOSE)
    found = np.full(len(turn.room), -np.inf)
    np.maximum.at(found, turn.machine[short], np.maximum(even[short], 0.0))
    return np.where(np.isneginf(found), np.inf, found)
