"""The epoch report: what one epoch did, how long each part took, and what it left behind.

Times are seconds, sizes bytes, ratios 0 to 1. *Useful* time is what an instance spends on its rows:
deserialising them, processing them, serialising the result. *Idle* time is waiting for input.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class SourceReport:
    """One source in one epoch; None where it can't tell."""

    name: str
    rows_in: int | None = None
    """Rows taken."""
    lag_rows: int | None = None
    """Rows due and not taken yet."""
    latency_s: float | None = None
    """From the time its newest taken row was due to the epoch's publication."""
    injected_rows_per_s: float | None = None
    """How fast rows came in of late, by the source's own count."""


@dataclass(frozen=True)
class HostReport:
    """A machine's processors since it started, when a task ended on it."""

    host: str
    busy_s: float
    """Processor time used, by whatever process."""
    total_s: float
    """Processor time there was."""


@dataclass(frozen=True)
class Sent:
    """Bytes that a worker's output of one operator had for a slice of the next."""

    worker: str
    slice: int
    bytes: int


@dataclass(frozen=True)
class HotKey:
    """A key that had a good share of an epoch's rows, by a sample of them."""

    key: str
    """As JSON: its columns in a list."""
    slice: int
    rows: int


@dataclass(frozen=True)
class InstanceReport:
    """One instance of one operator in one epoch, measured where it ran."""

    instance: int
    rows_in: int = 0
    """Rows that reached the instance, after rows of equal key were combined."""
    rows_out: int = 0
    idle_s: float = 0.0
    deserialise_s: float = 0.0
    process_s: float = 0.0
    serialise_s: float = 0.0
    cpu_s: float = 0.0
    resident_bytes: int = 0
    worker: str = ""
    """The worker it ran on; empty if there is only one."""
    slice_rows: tuple[tuple[int, int], ...] = ()
    """By slice: the rows that reached it; slices without any are left out."""
    host: HostReport | None = None

    @property
    def useful_s(self) -> float:
        return self.deserialise_s + self.process_s + self.serialise_s


@dataclass(frozen=True)
class OperatorReport:
    """One operator in one epoch."""

    step: str
    rows_in: int = 0
    rows_out: int = 0
    late_rows: int = 0
    malformed_rows: int = 0
    map_busy_s: float = 0.0
    """Time spent where rows were read: reading, stateless steps, preparing them for the shuffle."""
    state_rows: int = 0
    state_bytes: int = 0
    runs: int = 0
    watermark_us: int | None = None
    job_s: float = 0.0
    durable_reads: int = 0
    """Blocks of state read from the durable store because no worker had them at hand."""
    backup_bytes: int = 0
    """Rows kept by workers that stand by."""
    instances: tuple[InstanceReport, ...] = ()
    traffic: tuple[Sent, ...] = ()
    """What came from keyed steps before it."""
    hot_keys: tuple[HotKey, ...] = ()
    """The hottest first; none if no key stands out."""
    shed_rows: int = 0
    """Rows of sources and keyed steps before it that it was spared."""
    ahead_rows: int = 0
    """Rows that were kept out because their event time is too far ahead of the clock."""


@dataclass(frozen=True)
class QueryReport:
    """One query in one epoch, in rows of its sources: `offered` is the sum of the three others."""

    query: str
    offered: int
    processed: int
    shed: int
    dead_letters: int
    accuracy: float = 1.0
    """The share of rows that it got, malformed ones too; shedding between keyed steps counts too."""
    priority: int = 0
    minimum_accuracy: float = 1.0


@dataclass(frozen=True)
class Phases:
    """Where an epoch's time went, on the driver's clock."""

    plan_s: float = 0.0
    compute_s: float = 0.0
    commit_s: float = 0.0
    publish_s: float = 0.0
    collect_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.plan_s + self.compute_s + self.commit_s + self.publish_s + self.collect_s


@dataclass(frozen=True)
class EpochReport:
    """One epoch."""

    app: str
    epoch: int
    ended_at: float
    """Seconds since the Unix epoch."""
    plan: int
    replayed: bool
    """It was true before: published again by a later driver, or repeated after going back."""
    rows_in: int
    """Rows that the sources gave, malformed ones too, whatever becomes of them in the graph."""
    rows_out: int
    """Rows that steps gave to sinks; a step with several sinks counts once."""
    lag_rows: int | None
    """Rows due and not yet taken from the sources; None if the sources can't tell."""
    latency_s: float | None
    """From the time the epoch's newest row was due to its publication; None if not known."""
    dead_letters: int
    phases: Phases
    operators: tuple[OperatorReport, ...] = field(default=())
    retries: int = 0
    """How often it was planned and run anew because a worker was lost or lacked its state."""
    sources: tuple[SourceReport, ...] = ()
    queries: tuple[QueryReport, ...] = ()
    """None if no query of the app can do with less than everything."""
    elapsed_s: float | None = None
    """From the end of the epoch before it in the same run, or from its own start if it is the first, to its end.

    None in reports that were written before this was measured.
    """
    published_again: bool = False
    """An earlier driver computed it; this one published it again."""
    without_input: bool = False
    """No source had anything new: it happened because something else was due, such as a migration's next step."""
    untold: bool = False
    """It was true before, and no report told of it: the driver that committed it ended first."""

    @property
    def counts(self) -> bool:
        """Whether sums over reports take it in: each epoch once."""
        return self.untold or not self.replayed
