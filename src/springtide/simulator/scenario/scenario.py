"""A scenario: a graph, its rows, a cluster, what fails, and who decides. Immutable, read from TOML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from springtide.migration.step import Options
from springtide.simulator.model.arrivals import Profile

EPOCHS, PIPELINE = "epochs", "pipeline"


@dataclass(frozen=True)
class SourceModel:
    name: str
    profile: Profile
    backlog_s: float | None = None
    """A source that is held up stops making rows once those of this time wait; None: it never stops."""


@dataclass(frozen=True)
class OperatorModel:
    """One keyed step, with the stateless ones before it."""

    name: str
    inputs: tuple[str, ...]
    """Sources and operators that feed it."""
    service_s: float
    """Time on one row, on a slot of its own."""
    selectivity: float = 1.0
    """Rows pushed for each one processed."""
    exponent: float = 1.0
    """p instances do the work of p ** exponent."""
    keys: int = 0
    key_bytes: float = 0.0
    """State of one key."""
    skew: float = 0.0
    """0: all slices have the same rows; 1: the second hottest has half of the hottest, the third a third."""
    parallelism: int = 1
    """For a pipeline: its instances at the start."""
    affinity: float = 0.0
    """The share of its rows that come from one slice of the operator before it, the others from all of them."""
    remote_s: float = 0.0
    """Time on a row on top if it comes from another host."""
    row_bytes: float = 100.0


@dataclass(frozen=True)
class FlowModel:
    """How rows go through the graph."""

    kind: str = EPOCHS
    """Epochs: all operators share all slots, one epoch after the other, as in Springtide. Pipeline: each operator
    has slots of its own, with a queue in front of each, as in Heron and Flink."""
    overhead_s: float = 0.5
    """What an epoch takes without a row."""
    trigger_s: float = 1.0
    """The shortest time from the start of an epoch to that of the next."""
    most_rows: int | None = None
    """Rows that an epoch takes at most."""
    jitter: float = 0.0
    """How far the time of an epoch strays, relative."""
    tick_s: float = 1.0
    """For a pipeline: the step of time."""
    buffer_rows: int = 10_000
    """For a pipeline: rows that may wait for one instance before those upstream are held up."""


@dataclass(frozen=True)
class ClusterModel:
    workers: int
    slots: int = 1
    zones: int = 1
    workers_a_host: int = 1
    start_s: float = 10.0
    """From the request to a worker."""
    warm_up_s: float = 5.0
    """From there until it is as fast as the others."""
    bandwidth_bytes: float = 100e6
    """Bytes a second that a worker sends, and as many that it takes in."""


@dataclass(frozen=True)
class Outage:
    """Workers that are lost at one moment."""

    at_s: float
    workers: int = 1
    every: int = 1
    """1: neighbours on the ring; 2: every other one."""


@dataclass(frozen=True)
class FailureModel:
    outages: tuple[Outage, ...] = ()
    mean_h: float | None = None
    """How long a worker lives on average, in hours; None if only the outages count."""
    detect_s: float = 1.0
    """From a loss to the moment it is known."""


@dataclass(frozen=True)
class StateModel:
    slices: int = 128
    replicas: int = 1
    checkpoint_s: float = 10.0
    """Between two peer checkpoints: rows since the last are seen again by a new owner."""
    durable_s: float = 300.0
    """Between two durable checkpoints, which are for state that has lost every copy."""


@dataclass(frozen=True)
class MigrationModel:
    strategy: str
    options: Options
    stop_restart_s: float | None = None
    """How long the whole app stands still at each change, in place of the strategy."""


@dataclass(frozen=True)
class ControlModel:
    policies: tuple[str, ...]
    interval_s: float = 30.0
    first_s: float | None = None
    """When the first decision is made; None: after one interval."""
    stability: Mapping[str, Any] | None = None
    """Options of what keeps a policy steady; None: nothing does."""
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By policy: its options."""
    intervals_s: Mapping[str, float] = field(default_factory=dict)
    """By policy: its interval, if it has one of its own."""

    def times(self, policy: str) -> tuple[float, float]:
        """When it decides first, and how often."""
        interval_s = self.intervals_s.get(policy, self.interval_s)
        return self.first_s or interval_s, interval_s


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    duration_s: float
    seed: int
    flow: FlowModel
    sources: tuple[SourceModel, ...]
    operators: tuple[OperatorModel, ...]
    """Each after those that feed it."""
    cluster: ClusterModel
    failures: FailureModel
    state: StateModel
    migration: MigrationModel
    control: ControlModel

    def consumers(self, name: str) -> tuple[OperatorModel, ...]:
        """The operators that a source or an operator feeds."""
        return tuple(operator for operator in self.operators if name in operator.inputs)
