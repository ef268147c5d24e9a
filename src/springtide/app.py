"""The app: a dataflow that can run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from springtide.builder import Dataflow
from springtide.control.adapt.settings import Adapt
from springtide.control.api.address import control_directory
from springtide.control.api.app_controls import RunningControls
from springtide.control.api.presence import RUNNING, Announced
from springtide.control.api.server import ControlServer
from springtide.control.migration_log import Measuring, MigrationLog
from springtide.control.shed.controller import SHARED
from springtide.control.shed.log import ShedLog
from springtide.control.shed.tenant import Tenant
from springtide.engine.durability.interval import Interval
from springtide.engine.executors.stall import STALL_S, checked_stall_s
from springtide.engine.lifecycle.config import RunConfig
from springtide.engine.lifecycle.report_log import KEEP_REPORTS
from springtide.engine.lifecycle.running import Running
from springtide.engine.lifecycle.stop_condition import StopCondition
from springtide.engine.pool.hire import ElasticPoolConfig
from springtide.engine.spark.session import SessionConfig, box
from springtide.metrics.report import EpochReport
from springtide.migration.errors import Refused
from springtide.migration.progress import Migration
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class App(Dataflow):
    """A dataflow from sources to sinks, run on Spark.

    >>> from springtide import App, agg, sinks, sources
    >>> app = App("clicks")
    >>> clicks = app.source("clicks", sources.generator(1000, keys=10))
    >>> query = clicks.key_by("key").aggregate("count", n=agg.count()).sink("out", sinks.memory())
    """

    _running: Running | None = None
    """The last one that was started."""
    _controls: RunningControls | None = None
    """Its controls, as long as it runs on several workers."""
    _adapt: Adapt | None = None
    """How it adapts by itself, if it does."""

    def start(
        self,
        spark: "SparkSession | None" = None,
        *,
        checkpoint: str | None = None,
        until: StopCondition | str | None = None,
        instances: int | None = None,
        trigger_s: float = 0.0,
        local: str | None = None,
        durable_every: int | str | Interval = 1,
        stall_s: float = STALL_S,
        master: str | None = None,
        workers: int | None = None,
        replicas: int = 1,
        zones: Sequence[str] = (),
        force: bool = False,
        settings: Mapping[str, str] | None = None,
        log_level: str = "OFF",
        on_epoch: Callable[[EpochReport], None] | None = None,
        on_start: Callable[[str], None] | None = None,
        keep_reports: int = KEEP_REPORTS,
    ) -> Running:
        """Start the app and return at once.

        A session given as `spark`, or one that is active, is used and never stopped; else one is made. The
        checkpoint (default `.springtide/NAME`) holds all state: started again on it, the app goes on
        where it was. `until` is `"available"`, `"epochs=N"`, `"rows=N"`, `"seconds=N"` or None. With `"available"` the
        app ends once it has done what its sources have now, and has closed what that has made due by event time.

        With `durable_every`, the state goes to the durable store after that number of epochs, or after a time such as
        `"30 seconds"`: less is written, and if every copy of some state is lost, the epochs since are repeated from
        their sources. What sinks have had is not published again.

        Jobs that show no progress for `stall_s` seconds, or three times that while tasks run, are cancelled and tried
        again once; then the app fails with an error that says what Spark showed. It also fails if an epoch gives no
        sign of life for six times that.

        With `workers`, keyed state is spread over that number of Spark executors, each slice with `replicas` copies on
        other workers, in other fault `zones` where there are some. Without a `master` the
        executors run on this machine. More workers than it or the cluster has room for are refused, unless with
        `force`.

        `on_start` is called with each part of the start as it begins: `Spark`, `2 workers`, `first epoch`.
        `on_epoch` is called with the report of each epoch, from another thread. Of all of them, the last `keep_reports`
        are kept in memory and returned by `wait`, so that an app can run for weeks.
        """
        session = SessionConfig(settings=settings or {}, log_level=log_level, workers=workers or 0)
        if master is not None or workers is not None:
            session = replace(session, master=master or box(workers or 1))
        pool = None
        if workers is not None:
            pool = ElasticPoolConfig(workers, replicas, tuple(zones), force=force)
        config = RunConfig(
            checkpoint or default_checkpoint(self.name),
            instances,
            trigger_s,
            StopCondition.parse(until) if isinstance(until, str) else until or StopCondition(),
            local,
            Interval.of(durable_every),
            pool,
            checked_stall_s(stall_s),
            session,
            None if self._adapt is None or self._adapt.force else self._adapt.maximum,
            keep_reports,
        )
        announced = Announced(self.name, control_directory(config.checkpoint, default_checkpoint(self.name)))

        def began(part: str) -> None:
            announced(part)
            if on_start is not None:
                on_start(part)

        try:
            running = self._running = Running(self, config, spark, [] if on_epoch is None else [on_epoch], began)
        except BaseException:
            announced.end()
            raise
        running.at_end.append(announced.end)
        try:
            self._take_part(running)
            if pool is not None:
                self._serve(running, config.checkpoint)
        except BaseException:
            running.stop()
            raise
        announced(RUNNING)
        return running

    def scale(
        self,
        workers: int,
        strategy: str = DEFAULT,
        *,
        slices_an_epoch: int | None = None,
        hottest_first: bool = False,
        force: bool = False,
    ) -> Migration:
        """Grow or shrink the app that `start` has started to this number of workers; returns at once.

        `progressive` moves some `slices_an_epoch`, those with the most rows first if `hottest_first`. More workers than
        there is room for are refused, unless with `force`.
        """
        return self._at_work().scale(workers, strategy, Options(slices_an_epoch, hottest_first, force=force))

    def move(
        self,
        operator: str,
        slices: Iterable[int],
        to: str,
        strategy: str = DEFAULT,
        *,
        slices_an_epoch: int | None = None,
        hottest_first: bool = False,
    ) -> Migration:
        """Move some slices of a keyed step of the app that `start` has started to a worker; returns at once."""
        return self._at_work().move(operator, slices, to, strategy, Options(slices_an_epoch, hottest_first))

    def adapt(self, minimum: int = 1, maximum: int | None = None, policy: str = "ds2", **options: Any) -> None:
        """Let the app decide by itself when and how much to change, from now on, or from its start with `workers`.

        The policy is `ds2`, `dhalion`, `threshold`, `otd` or `skew`. Options are those of
        `springtide.control.adapt.settings.Adapt`: the strategy, a dry run, the pace, the target utilisation, bounds by
        step, times of day without a change.
        """
        self._adapt = Adapt(policy, minimum, maximum, **options)
        if self._controls is not None:
            self._controls.start_adapting(self._adapt)

    def _at_work(self) -> Running:
        if self._running is None:
            raise Refused(f"expected app {self.name!r} to be running in this process: start it with start(workers=N)")
        return self._running

    def _take_part(self, running: Running) -> None:
        """Share the cluster with the other apps of this process: whoever may shed gives way under overload."""
        SHARED.join(Tenant(self.name, running.graph, running), ShedLog(running.store))
        running.at_end.append(partial(SHARED.leave, self.name))

    def _serve(self, running: Running, checkpoint: str) -> None:
        """Let other processes on this machine ask for changes."""
        controls = RunningControls(self.name, running, self.graph(), running.store)
        pool = running.pool
        running.listeners.append(Measuring(MigrationLog(running.store), lambda: pool.migrator.current))
        server = ControlServer(controls, control_directory(checkpoint, default_checkpoint(self.name)))
        running.at_end += [self._alone, server.stop, controls.stop]
        server.start()
        if self._adapt is not None:
            controls.start_adapting(self._adapt)
        self._controls = controls

    def _alone(self) -> None:
        self._controls = None

    def run(self, spark: "SparkSession | None" = None, **options: object) -> list[EpochReport]:
        """Start the app, wait until it ends, and return the reports of its epochs, the last `keep_reports` of them.

        Takes the options of `start`. Ctrl-C finishes the epoch in flight and stops.
        """
        running = self.start(spark, **options)  # type: ignore[arg-type]
        try:
            return running.wait()
        except KeyboardInterrupt:
            return running.stop()


def default_checkpoint(app: str) -> str:
    """Where an app keeps its state if nothing else is said."""
    return f".springtide/{app}"
