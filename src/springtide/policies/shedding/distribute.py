"""CPU goes to the tasks of one machine, and accuracy to queries (Algorithm 3 and lines 15 to 19 of Algorithm 1).

The highest priority has its turn first. In a turn only what its queries ask for counts, also for a task that feeds
others too: in the listing such a task gets all in the turn of its highest query, and a low query would take CPU from
that one.

An even share for each instance gives more to a task than it can use if another task of the same query gets too little.
The listing leaves that unused; here queries rise further, in proportion to what they got, until a machine is full.
"""

from dataclasses import dataclass, field

from springtide.policies.shedding.cpu import obtained_accuracy, required_cpu, slack
from springtide.policies.shedding.model import Model

ROUNDS = 8
"""How often queries may rise on what was left unused."""
WORTH = 1e-3
"""Less accuracy than this is not worth another round."""
CLOSE = 1e-9

Turn = dict[int, tuple[int, ...]]
"""Tasks, and the queries of one priority that each feeds."""


@dataclass
class Rise:
    """Accuracies on their way up, all by number; one decision's own working memory."""

    model: Model
    costs: list[float]
    places: list[list[int]]
    """By task: the machine of each instance."""
    room: list[float]
    """By machine: cores that nobody has yet."""
    levels: list[float]
    """By query: the accuracy that it has so far."""
    held_by: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By query: the machine and the task that kept it from rising further."""
    base: list[float] = field(init=False)
    """By task: the accuracy that it has CPU for."""

    def __post_init__(self) -> None:
        self.base = self.model.graph.highest(self.levels)

    def to(self, ceilings: list[float]) -> None:
        """Let all queries rise as far as there is room, none above its ceiling, those of high priority first."""
        for turn in self.model.graph.turns:
            self._one_turn(turn, ceilings)
        reached = list(ceilings)
        for queries, base in zip(self.model.graph.queries_of, self.base, strict=True):
            for query in queries:
                if base < reached[query]:
                    reached[query] = base
        # Rows that all tasks of a query work on anyway, for others, are not dropped.
        self.levels = [max(pair) for pair in zip(self.levels, reached, strict=True)]

    def _one_turn(self, turn: Turn, ceilings: list[float]) -> None:
        desired = list(ceilings)
        asks: dict[int, list[float]] = {}
        tasks: dict[int, list[int]] = {}
        for task, ask in self._asks(turn, desired).items():
            for place in self.places[task]:
                asks.setdefault(place, []).append(ask)
                tasks.setdefault(place, []).append(task)
        slacks = {place: slack(found, self.room[place]) for place, found in asks.items()}
        short = sorted((place for place in slacks if slacks[place] > CLOSE), key=lambda m: (-slacks[m], m))
        for place in short:
            self._distribute_evenly(place, tasks[place], turn, desired)
        if short:
            self._use_the_rest(turn, desired, ceilings)
        for place, used in self._used(turn, desired).items():
            self.room[place] = max(0.0, self.room[place] - used)
        for task, queries in turn.items():
            self.base[task] = max(self.base[task], _most(queries, desired))
            for query in queries:
                self.levels[query] = desired[query]

    def _ask(self, task: int, queries: tuple[int, ...], desired: list[float]) -> float:
        """The cores that an instance asks for, beyond those that it has."""
        most, base = _most(queries, desired), self.base[task]
        return required_cpu(most, self.costs[task]) - required_cpu(base, self.costs[task]) if most > base else 0.0

    def _asks(self, turn: Turn, desired: list[float]) -> dict[int, float]:
        """By task of a turn."""
        costs, base, found = self.costs, self.base, {}
        for task, queries in turn.items():
            most = desired[queries[0]] if len(queries) == 1 else _most(queries, desired)
            before = base[task]
            if most > before:
                cost = costs[task]
                found[task] = required_cpu(most, cost) - required_cpu(before, cost)
        return found

    def _used(self, turn: Turn, desired: list[float]) -> dict[int, float]:
        """By machine: the cores that a turn takes if its queries get these accuracies."""
        found: dict[int, float] = {}
        for task, ask in self._asks(turn, desired).items():
            for place in self.places[task]:
                found[place] = found.get(place, 0.0) + ask
        return found

    def _distribute_evenly(self, place: int, tasks: list[int], turn: Turn, desired: list[float]) -> None:
        """Algorithm 3: who asks for least is served first, and what it leaves is shared by the others."""
        left, waiting = self.room[place], len(tasks)
        for task in sorted(tasks, key=lambda each: self._ask(each, turn[each], desired)):
            queries, cost, base = turn[task], self.costs[task], self.base[task]
            ask = self._ask(task, queries, desired)
            given = min(ask, left / waiting)
            left, waiting = left - given, waiting - 1
            if given < ask - CLOSE:
                accuracy = base + obtained_accuracy(given, cost, base)
                for query in queries:
                    if accuracy < desired[query]:
                        desired[query] = max(accuracy, self.levels[query])
                        self.held_by[query] = place, task

    def _use_the_rest(self, turn: Turn, desired: list[float], ceilings: list[float]) -> None:
        """Raise in place what still has room on all machines of a query."""
        for _ in range(ROUNDS):
            factors = {place: self.room[place] / used for place, used in self._used(turn, desired).items() if used > 0}
            reach: dict[int, float] = {}
            for task in self._asks(turn, desired):
                factor = min([factors.get(place, 1.0) for place in self.places[task]])
                for query in turn[task]:
                    reach[query] = min(reach.get(query, factor), factor)
            before = {}
            for query, factor in reach.items():
                risen = min(ceilings[query], self.levels[query] + factor * (desired[query] - self.levels[query]))
                if risen > desired[query] + WORTH:
                    before[query], desired[query] = desired[query], risen
            self._take_back(turn, desired, before)
            if not before:
                return

    def _take_back(self, turn: Turn, desired: list[float], before: dict[int, float]) -> None:
        """What does not fit: a task follows the highest of its queries, which may cost more than in proportion."""
        full = {place for place, used in self._used(turn, desired).items() if used > self.room[place] + CLOSE}
        for task, queries in turn.items():
            if full and not full.isdisjoint(self.places[task]):
                for query in queries:
                    if query in before:
                        desired[query] = before.pop(query)


def _most(queries: tuple[int, ...], accuracy: list[float]) -> float:
    return accuracy[queries[0]] if len(queries) == 1 else max([accuracy[query] for query in queries])
