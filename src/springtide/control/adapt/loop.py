"""The loop: observe, decide, record, enact. It runs beside the epochs and never holds one up."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from springtide.control.adapt.ledger import Ledger
from springtide.ids import SliceId, WorkerId
from springtide.logs import room_logger
from springtide.metrics.snapshot import Snapshot
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.policies.decision import Decision, Hold, Rebalance, Scale, action
from springtide.policies.effect import gauge, helped
from springtide.policies.guards import Verdict
from springtide.policies.past import Entry
from springtide.waits import let_go

log = room_logger(__name__)

NUMBER = re.compile(r"[0-9][0-9., ]*")


class Adapted(Protocol):
    """What the loop looks at and changes."""

    def snapshot(self, window_s: float) -> Snapshot | None:
        """What was measured lately; None if that is too little."""

    def scale(self, workers: int, strategy: str) -> Migration:
        """Grow or shrink; returns at once."""

    def move(self, operator: str, slices: frozenset[SliceId], to: WorkerId, strategy: str) -> Migration:
        """Move slices; returns at once."""

    def pause_of(self, migration: Migration) -> float:
        """The longest that no epoch was published because of a migration."""


@dataclass(frozen=True)
class Pace:
    """How often the loop looks, and how far back."""

    interval_s: float = 5.0
    window_s: float = 15.0
    settle_s: float = 15.0
    """How long after a change its effect is measured."""


class Loop:
    """Decides with one policy; at most one change at a time."""

    def __init__(
        self,
        adapted: Adapted,
        consider: Callable[[Snapshot, tuple[Entry, ...]], Verdict],
        ledger: Ledger,
        pace: Pace,
        strategy: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.adapted, self.consider, self.ledger = adapted, consider, ledger
        self.pace, self.strategy, self.clock = pace, strategy, clock
        self._changing: tuple[Entry, Migration] | None = None
        self._settling: Entry | None = None
        self._last_hold = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="springtide-loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            let_go(self._thread)

    def _run(self) -> None:
        while not self._stopped.wait(self.pace.interval_s):
            try:
                self.step()
            except Exception as error:
                # Whatever goes wrong here, the app goes on as it is, and people can read why.
                log.exception("the loop could not decide")
                self._hold(f"the loop could not decide: {type(error).__name__}: {error}", {})

    def step(self) -> None:
        """One turn: learn what came of the last change, look, decide, act."""
        if self._changing is not None and not self._over(*self._changing):
            return
        snapshot = self.adapted.snapshot(self.pace.window_s)
        if snapshot is None:
            return
        self._learn(snapshot)
        verdict = self.consider(snapshot, self.ledger.past)
        if isinstance(verdict.decision, Hold):
            self._record_hold(verdict, snapshot)
        else:
            self._enact(verdict, verdict.decision, snapshot)

    def _over(self, entry: Entry, migration: Migration) -> bool:
        """Whether a change has ended; then it is told how."""
        if migration.under_way:
            return False
        outcome = f"{migration.state}: {migration.message}" if migration.message else migration.state.value
        done = migration.state == MigrationState.DONE
        told = self.ledger.update(
            entry.number,
            {phase: round(at - entry.at, 3) for phase, at in migration.phases.items()},
            ended_at=migration.ended_at,
            pause_s=self.adapted.pause_of(migration) if done else None,
            outcome=outcome,
            helped=None if done else False,
        )
        self._changing = None
        self._settling = told if done else None
        return True

    def _learn(self, snapshot: Snapshot) -> None:
        """Once a change has settled: did it help?"""
        entry = self._settling
        if entry is None or entry.ended_at is None or snapshot.at < entry.ended_at + self.pace.settle_s:
            return
        after = gauge(snapshot)
        verdict = helped(entry.decision, entry.gauge, after) if entry.gauge is not None else None
        self.ledger.update(entry.number, after=after, helped=verdict)
        self._settling = None

    def _enact(self, verdict: Verdict, decision: Scale | Rebalance, snapshot: Snapshot) -> None:
        self._settling = None  # What comes now would be taken for its effect.
        entry = self._entry(verdict.wanted, decision, verdict.vetoes, snapshot)
        self.ledger.add(entry, seen(snapshot))
        self._last_hold = ""
        try:
            if isinstance(decision, Scale):
                migration = self.adapted.scale(decision.workers, self.strategy)
            else:
                migration = self.adapted.move(decision.operator, decision.slices, decision.target, self.strategy)
        except Exception as error:
            log.info("decision %s was refused: %s", entry.number, error)
            self.ledger.update(entry.number, ended_at=self.clock(), outcome=f"refused: {error}", helped=False)
            return
        self._changing = (entry, migration)

    def _record_hold(self, verdict: Verdict, snapshot: Snapshot) -> None:
        """Holding is told once, until there is another reason or another wish."""
        wish = action(verdict.wanted) if verdict.vetoes else ""
        warning = isinstance(verdict.decision, Hold) and verdict.decision.warning
        why = "; ".join([*verdict.vetoes, verdict.decision.reason if warning else ""])
        sort = f"{wish} {NUMBER.sub('#', why)}"  # Seconds that pass, and rows that come, are no other reason.
        keep = sort != self._last_hold and (bool(verdict.vetoes) or warning)
        self._last_hold = sort
        entry = self._entry(verdict.wanted, verdict.decision, verdict.vetoes, snapshot)
        self.ledger.add(entry, seen(snapshot), keep=keep)

    def _hold(self, reason: str, found: dict[str, Any]) -> None:
        if reason != self._last_hold:
            self._last_hold = reason
            self.ledger.add(self._entry(Hold(reason, warning=True), Hold(reason, warning=True), (), None), found)

    def _entry(self, wanted: Decision, decision: Decision, vetoes: tuple[str, ...], snapshot: Snapshot | None) -> Entry:
        at = self.clock() if snapshot is None else max(snapshot.at, self.clock())
        return Entry(self.ledger.next, at, wanted, decision, vetoes, None if snapshot is None else gauge(snapshot))


def seen(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot in short, for people."""
    operators = {}
    for name, instances in snapshot.operators.items():
        useful = sum(i.useful_s for i in instances)
        operators[name] = {
            "instances": len(instances),
            "rows_per_s": round(sum(i.records_in for i in instances) / snapshot.window_s, 1),
            "true_rate": round(sum(i.true_rate for i in instances), 1),
            "busy": round(useful / (snapshot.window_s * len(instances)), 3),
        }
    return {
        "window_s": round(snapshot.window_s, 2),
        "epochs": snapshot.epochs,
        "sources": {s.name: {"rate": round(s.rate, 1), "lag_rows": s.lag_rows} for s in snapshot.sources},
        "operators": operators,
        "workers": {w.id: {"cpu": round(w.cpu, 3), "queue_rows": round(w.queue_rows)} for w in snapshot.workers},
    }
