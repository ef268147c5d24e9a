"""The books: rows are counted where they fall due, where they are done and where they wait, each on its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from springtide.simulator.model.arrivals import Arrivals
from springtide.simulator.scenario.scenario import OperatorModel


@dataclass(frozen=True)
class Totals:
    """All rows so far; one that goes through several operators counts at each of them."""

    offered: int
    processed: int
    waiting: int
    lost: int
    """Offered, and neither processed nor waiting."""
    doubled: int
    """Processed more than once."""


@dataclass
class Account:
    """One operator."""

    done: int = 0
    pushed: int = 0
    waiting: int = 0


@dataclass
class Books:
    arrivals: Mapping[str, Arrivals]
    operators: Sequence[OperatorModel]
    backlogs: Mapping[str, float] = field(default_factory=dict)
    """By source: the seconds after which it makes no more rows while it is held up."""
    taken: dict[str, int] = field(default_factory=dict)
    """By source: rows taken from it."""
    withheld: dict[str, int] = field(default_factory=dict)
    """By source: rows that it did not make because it was held up; they were never offered."""
    accounts: dict[str, Account] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken = self.taken or dict.fromkeys(self.arrivals, 0)
        self.withheld = self.withheld or dict.fromkeys(self.arrivals, 0)
        self.accounts = self.accounts or {operator.name: Account() for operator in self.operators}

    def lag(self, source: str, now: float) -> int:
        """Rows of a source that are due and not taken."""
        return self.offered(source, now) - self.taken[source]

    def offered(self, source: str, now: float) -> int:
        """Rows of a source so far."""
        return self.arrivals[source].due(now) - self.withheld[source]

    def hold_back(self, now: float) -> None:
        """Sources that are held up for too long make no more rows."""
        for source, most_s in self.backlogs.items():
            most = int(self.arrivals[source].rate(now) * most_s)
            self.withheld[source] += max(0, self.lag(source, now) - most)

    def lag_rows(self, now: float) -> int:
        return sum(self.lag(source, now) for source in self.arrivals)

    def do(self, operator: OperatorModel, rows: int) -> int:
        """Rows are done; the rows that they give. Parts of rows are kept for the next time."""
        account = self.accounts[operator.name]
        account.done += rows
        pushed = int(account.done * operator.selectivity) - account.pushed
        account.pushed += pushed
        return pushed

    def copy(self) -> "Books":
        accounts = {name: replace(account) for name, account in self.accounts.items()}
        return Books(self.arrivals, self.operators, self.backlogs, dict(self.taken), dict(self.withheld), accounts)

    def go_back(self, to: "Books") -> int:
        """To what they were then; rows that are to be processed once more."""
        done = sum(account.done for account in self.accounts.values())
        earlier = to.copy()
        self.taken, self.accounts = earlier.taken, earlier.accounts
        return done - sum(account.done for account in self.accounts.values())

    def totals(self, now: float) -> Totals:
        offered = processed = waiting = lost = doubled = 0
        for operator in self.operators:
            account = self.accounts[operator.name]
            due = lag = 0
            for name in operator.inputs:
                if name in self.arrivals:
                    due += self.offered(name, now)
                    lag += self.lag(name, now)
                else:
                    due += self.accounts[name].pushed
            missing = due - account.done - account.waiting - lag
            offered += due
            processed += account.done
            waiting += account.waiting + lag
            lost += max(0, missing)
            doubled += max(0, -missing)
        return Totals(offered, processed, waiting, lost, doubled)
