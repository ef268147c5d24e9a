"""What is told of an epoch: its account, which goes into the manifest, and its report."""

import time
from collections.abc import Callable

from springtide.dataflow.graph import Graph
from springtide.engine.epoch.accounts import account_of
from springtide.engine.epoch.computed import Computed
from springtide.engine.epoch.source_progress import Progress
from springtide.engine.shedding.rows_taken import RowsTaken
from springtide.engine.wire.stopwatch import Stopwatch
from springtide.metrics.account import Account
from springtide.metrics.report import EpochReport, Phases


class Reporter:
    """Draws up accounts and reports, one epoch after the other, and hands the reports to `on_report`."""

    def __init__(self, app: str, graph: Graph, progress: Progress, on_report: Callable[[EpochReport], None]) -> None:
        self.app, self._graph = app, graph
        self._progress, self._on_report = progress, on_report
        self._ended_s: float | None = None
        """When the last epoch of this run ended, on a clock that never jumps."""

    def account(self, done: Computed) -> Account:
        """What became of an epoch's rows. All have been read by now: sinks get theirs from blocks."""
        taken = done.taken or RowsTaken(self._progress.rows(done.manifest, done.parent), 0)
        return account_of(self._graph, done, taken.by_source, taken.malformed)

    def __call__(self, done: Computed, watch: Stopwatch) -> None:
        """Report an epoch that is true and published."""
        self._on_report(self._report(done, watch))

    def _report(self, done: Computed, watch: Stopwatch) -> EpochReport:
        manifest, account = done.manifest, done.manifest.account
        seen = self._progress.measure(manifest, done.parent, None if account is None else account.sources)
        phases = Phases(watch["plan"], watch["compute"], watch["commit"], watch["publish"], watch["collect"])
        before, self._ended_s = self._ended_s, time.monotonic()
        return EpochReport(
            self.app,
            manifest.epoch,
            seen.now,
            manifest.plan,
            done.replayed,
            seen.rows_in,
            0 if account is None else account.rows_out,
            seen.lag_rows,
            seen.latency_s,
            0 if account is None else account.dead_letters,
            phases,
            done.reports,
            done.retries,
            seen.sources,
            () if account is None else account.queries,
            phases.total_s if before is None else max(phases.total_s, self._ended_s - before),
            done.published_again,
            done.without_input,
        )
