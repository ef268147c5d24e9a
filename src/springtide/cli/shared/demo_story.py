"""The demo's story: an app grows, loses a worker and shrinks while it counts; and what each change cost."""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from rich import box
from rich.table import Table

from springtide.engine.executors.worker_pids import worker_processes
from springtide.engine.lifecycle.running import Running
from springtide.migration.progress import Migration
from springtide.migration.state import MigrationState
from springtide.present.numbers import number
from springtide.present.numbers import seconds as in_seconds

CALM_EPOCHS = 8
PATIENCE_S = 120.0
LOOK_S = 0.1


@dataclass(frozen=True)
class Chapter:
    """One change: when it was asked for, when it took effect, and what moved."""

    what: str
    asked_at: float
    began_at: float
    ended_at: float
    slices: int | None


class Story(threading.Thread):
    """Changes a running app, chapter by chapter, and then lets it end."""

    def __init__(self, running: Running, few: int, many: int, tell: Callable[[str], None]) -> None:
        super().__init__(name="springtide-story", daemon=True)
        self.running, self.few, self.many, self.tell = running, few, many, tell
        self.chapters: list[Chapter] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._calm(f"counting on {self.few} workers")
            self._scale(self.many)
            self._calm(f"counting on {self.many} workers")
            self._lose_one()
            self._calm("counting on")
            self._scale(self.few)
            self._calm(f"counting on {self.few} workers again")
        except Exception as error:
            self.failure = error
        finally:
            self.running.finish()

    def _calm(self, what: str) -> None:
        self.tell(what)
        goal = len(self.running.reports) + CALM_EPOCHS
        self._until(lambda: len(self.running.reports) >= goal)

    def _scale(self, workers: int) -> None:
        self.tell(f"asked for {workers} workers; the count goes on")
        asked = time.time()
        migration = self.running.scale(workers)
        self._until(lambda: not migration.under_way)
        self._note(f"{'grow' if workers == self.many else 'shrink'} to {workers}", asked, migration)

    def _lose_one(self) -> None:
        pool = self.running.pool
        victim = pool.plan.workers[-1].id
        self.tell(f"worker {victim} is killed with SIGKILL; the count goes on")
        before = pool.migrator.current
        asked = time.time()
        os.kill(worker_processes(os.getpid())[victim], signal.SIGKILL)
        self._until(lambda: pool.plan.worker(victim) is None)
        version = pool.plan.version
        self._until(lambda: self.running.reports[-1].plan >= version)
        back = next(r.ended_at for r in self.running.reports if r.plan >= version)
        self.chapters.append(Chapter("SIGKILL one", asked, asked, back, None))
        self.tell("a replacement is on its way; the count goes on")
        self._until(lambda: pool.migrator.current is not before and not _under_way(pool.migrator.current))
        healed = pool.migrator.current
        assert healed is not None
        self._note("replace it", back, healed)

    def _note(self, what: str, asked: float, migration: Migration) -> None:
        if migration.state != MigrationState.DONE:
            raise RuntimeError(f"{what}: the migration {migration.state}: {migration.message}")
        began = migration.phases.get("copying", asked)
        self.chapters.append(Chapter(what, asked, began, migration.ended_at or began, len(migration.flipped)))

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing came of it in {PATIENCE_S:.0f} s")
            if not self.running.active:
                raise RuntimeError("the app ended early")
            time.sleep(LOOK_S)

    def table(self) -> Table:
        """What each change cost."""
        reports = self.running.reports
        usual = median(r.phases.total_s for r in reports[len(reports) // 4 :])
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        table.title, table.title_justify = "What each change cost", "left"
        table.add_column("change", no_wrap=True)
        for name in ("start-up", "took", "slices", "epochs", "longest", "retries", "durable reads"):
            table.add_column(name, justify="right", no_wrap=True)
        for chapter in self.chapters:
            meanwhile = [
                r for r in reports if r.ended_at > chapter.began_at and r.ended_at - r.phases.total_s < chapter.ended_at
            ]
            table.add_row(
                chapter.what,
                in_seconds(chapter.began_at - chapter.asked_at) if chapter.began_at > chapter.asked_at else "-",
                in_seconds(chapter.ended_at - chapter.began_at),
                number(chapter.slices),
                number(len(meanwhile)),
                in_seconds(max((r.phases.total_s for r in meanwhile), default=usual)),
                number(sum(r.retries for r in meanwhile)),
                number(sum(o.durable_reads for r in meanwhile for o in r.operators)),
            )
        table.caption = f"epochs: those under way meanwhile; usually one takes {in_seconds(usual)}"
        return table


def _under_way(migration: Migration | None) -> bool:
    return migration is None or migration.under_way
