"""Peer checkpoints: beside the epochs, workers that stand by get the runs they lack."""

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from springtide.engine.executors.scheduler_pools import COPIES, use
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.pool.copy_job import CopyJob
from springtide.engine.worker.copy import Errand
from springtide.ids import WorkerId
from springtide.logs import room_logger
from springtide.state.layout import Layout
from springtide.waits import let_go

log = room_logger(__name__)

REST = 9
"""Copies take at most a tenth of the time, unless they are large or somebody waits for them."""
COPY_S = 300.0
"""How long a copy that is under way may take when the app ends."""
LEAST_S, LONGEST_S = 0.05, 10.0
REMEMBERED = 256
"""Peer checkpoints that are remembered."""


@dataclass(frozen=True)
class Checkpoint:
    """What one peer checkpoint copied."""

    epoch: int
    bytes: int
    state_bytes: int
    seconds: float
    ended_at: float
    """Seconds since the Unix epoch."""


class Replicator:
    """A thread that copies, at intervals, or at once when somebody waits for it."""

    def __init__(
        self,
        copying: CopyJob,
        roster: SharedRoster,
        layouts: Mapping[str, Layout],
        interval_s: float,
        hurry: threading.Event,
    ) -> None:
        """Whoever waits for replicas sets `hurry`: the next copy then begins at once."""
        self.done: deque[Checkpoint] = deque(maxlen=REMEMBERED)
        """The last ones."""
        self.copied_bytes = 0
        """By all of them."""
        self._copying, self._roster, self._layouts, self._interval_s = copying, roster, layouts, interval_s
        self._hurry, self._stopped = hurry, threading.Event()
        self._thread = threading.Thread(target=self._run, name="springtide-replicator", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a copy under way is waited for."""
        self._stopped.set()
        self._hurry.set()
        if self._thread.is_alive():
            let_go(self._thread, COPY_S)

    def _run(self) -> None:
        use(self._copying.spark.sparkContext, COPIES)
        while not self._stopped.is_set():
            began = time.monotonic()
            try:
                self.once()
            except Exception as error:
                # Replicas are soft: the next turn plans them anew, and the app goes on meanwhile.
                log.warning("replicas could not be brought up to date: %s: %s", type(error).__name__, error)
            took = time.monotonic() - began
            self._hurry.wait(max(self._interval_s - took, min(REST * took, LONGEST_S), LEAST_S))
            self._hurry.clear()

    def once(self) -> bool:
        """Bring everybody who stands by to the last epoch; False if that failed or there was nobody."""
        began = time.monotonic()
        with self._roster.held() as roster:
            manifest, plan, standbys = roster.head, roster.plan, roster.standbys
            if manifest is None or not any(o.replicas for o in plan.operators.values()):
                return False
            copies = standbys.copies(manifest, plan)
            errands = [Errand(c.run, c.slices, c.source, c.target, self._layouts[c.run.operator]) for c in copies]
            standbys.copying(manifest)
            parts = standbys.parts()
        try:
            copied = self._copying.run(errands, parts)
        except Exception as error:
            # A worker was lost, or a source's files are gone: the next one is planned with what is there then.
            log.info("replicas of epoch %s were given up: %s", manifest.epoch, error)
            with self._roster.held():
                standbys.given_up()
            return False
        written = copied.written
        there = {(name, WorkerId(part.worker)) for name, part in written}
        for fault in copied.faults:
            log.warning("replicas of epoch %s: %s; another copy is used if there is one", manifest.epoch, fault)
        with self._roster.held() as roster:
            # Others stand by if all workers were swapped meanwhile: they can remove what is of no use to anybody.
            swapped = roster.standbys is not standbys
            if not swapped:
                standbys.unsound(copied.faults)
            if swapped or copied.faults or {(e.run.name, e.target) for e in errands} - there:
                roster.standbys.given_up(part.name for _, part in written)
                return False
            standbys.copied(manifest, plan, written)
        state_bytes = sum(run.size_bytes for state in manifest.operators.values() for run in state.runs)
        size = sum(part.size_bytes for _, part in written)
        self.copied_bytes += size
        self.done.append(Checkpoint(manifest.epoch, size, state_bytes, time.monotonic() - began, time.time()))
        return True
