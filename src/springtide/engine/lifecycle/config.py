"""How to run an app, and what is refused."""

import re
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from springtide.dataflow.graph import Graph, Sink, Source
from springtide.engine.durability.interval import Interval
from springtide.engine.executors.stall import STALL_S
from springtide.engine.lifecycle.report_log import KEEP_REPORTS
from springtide.engine.lifecycle.stop_condition import StopCondition
from springtide.engine.pool.hire import ElasticPoolConfig
from springtide.engine.spark.capacity import box_capacity
from springtide.engine.spark.machine import this_machine
from springtide.engine.spark.session import SPECULATION, SessionConfig
from springtide.errors import BadValue
from springtide.migration.errors import Refused
from springtide.migration.phase import Commit
from springtide.migration.strategies import STOPPING


@dataclass(frozen=True)
class RunConfig:
    """How to run an app."""

    checkpoint: str
    """The durable store: a path or an fsspec URL."""
    instances: int | None = None
    """Instances of each keyed step; Spark's parallelism by default."""
    trigger_s: float = 0.0
    """The least time between the starts of two epochs."""
    until: StopCondition = field(default_factory=StopCondition)
    """When to stop by itself; never by default."""
    local: str | None = None
    """Where workers keep blocks, each app in a directory of its own below it; a temporary one by default."""
    durable_every: Interval = field(default_factory=Interval)
    """From one durable checkpoint of the state to the next."""
    pool: ElasticPoolConfig | None = None
    """Several workers; one, embedded or not, if None."""
    stall_s: float = STALL_S
    """How long jobs may show no progress; then they are cancelled, and tried again once."""
    session: SessionConfig = field(default_factory=SessionConfig)
    """How to make a Spark session if none is given."""
    most_workers: int | None = None
    """The most workers that it may take by itself later; None if it takes no more than there is room for."""
    keep_reports: int = KEEP_REPORTS
    """How many epoch reports are kept in memory, the newest."""

    def __post_init__(self) -> None:
        if self.keep_reports < 1:
            raise BadValue(f"keep_reports: expected at least 1, got {self.keep_reports}")


def check_interval(config: RunConfig, spark: SparkSession) -> None:
    """With one worker that is not embedded, Spark may run an epoch anywhere, and only the durable store is there."""
    master = spark.sparkContext.master or ""
    if not config.durable_every.each_epoch and config.pool is None and not re.match(r"local(\[|$)", master):
        raise Refused(
            f"a durable checkpoint every {config.durable_every} needs state that stays on its worker: "
            f"start with workers=N on {master}, or leave the interval at 1"
        )


def check_speculation(config: RunConfig, spark: SparkSession) -> None:
    """With several workers a keyed task runs where its state is, and a twin of it elsewhere can do nothing."""
    if config.pool is not None and spark.sparkContext.getConf().get(SPECULATION, "false").lower() == "true":
        raise Refused(
            f"expected {SPECULATION}=false for an app with workers=N, got true: a twin of a slow task runs on another "
            "worker, which does not have its state, and makes the epoch start over. Leave the setting out"
        )


def check_room(config: RunConfig) -> None:
    """Refuse, before Spark starts, more workers than this machine carries, if it is the one that is to carry them."""
    pool = config.pool
    if pool is not None and not pool.force and config.session.master.startswith("local-cluster"):
        machine = this_machine()
        box_capacity(machine.cores, machine.free_bytes).check(max(pool.workers, config.most_workers or 1))


def check_replayable(graph: Graph, strategy: str) -> None:
    """Refuse to go back to an earlier epoch if some source could not repeat what came after it."""
    once = [source.name for source in graph.of(Source) if not source.spec.replayable]
    stopping = STOPPING.get(strategy)
    if once and stopping and not any(isinstance(phase, Commit) for phase in stopping.phases):
        raise Refused(
            f"strategy {strategy!r} repeats what came after the last checkpoint: expected sources that can give rows "
            f"again, got {', '.join(map(repr, once))}, which cannot. Use drain, capture or a live strategy"
        )


def check_accuracy(graph: Graph, query: str, accuracy: float) -> None:
    """Refuse an accuracy that a query's owner would not accept."""
    found = {sink.name: sink.restrictions for sink in graph.of(Sink)}
    if query not in found:
        raise Refused(f"expected a query among {', '.join(found)}, got {query!r}: a query goes by the name of its sink")
    if not found[query].minimum_accuracy <= accuracy <= 1:
        raise Refused(
            f"query {query!r}: expected an accuracy from its minimum of {found[query].minimum_accuracy:g} to 1, "
            f"got {accuracy!r}"
        )
