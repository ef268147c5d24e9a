"""The first workers of an elastic pool: how many, and the plan that they begin with."""

from dataclasses import dataclass

from springtide.engine.executors.cluster import Cluster
from springtide.engine.executors.python_check import check_elsewhere
from springtide.engine.ownership.roster import ring_replicas
from springtide.engine.pool.keyed_state import KeyedState
from springtide.plan.plan import Plan, assign
from springtide.plan.ring import Ring

TASKS_EACH = 4
"""For each worker, so that every one of them gets some of the tasks that ask which Python it runs."""


@dataclass(frozen=True)
class ElasticPoolConfig:
    """How many workers, and how well they back each other up."""

    workers: int = 2
    replicas: int = 1
    """Workers that stand by for each slice."""
    zones: tuple[str, ...] = ()
    """Fault zones, given to workers in turn."""
    checkpoint_s: float = 2.0
    """Between two peer checkpoints."""
    start_s: float = 90.0
    """How long workers may take to come."""
    ready_s: float = 60.0
    """How long a migration's targets may take to be ready; then it is given up."""
    force: bool = False
    """Start also with more workers than there is room for."""


def hire(cluster: Cluster, state: KeyedState, config: ElasticPoolConfig) -> tuple[Ring, Plan]:
    """The first workers that come, warm, with an even share of every keyed step each."""
    cluster.check(config.workers, force=config.force)
    cluster.ask(config.workers)
    workers = cluster.wait_for(config.workers, config.start_s)[: config.workers]
    check_elsewhere(cluster.spark, TASKS_EACH * config.workers)
    cluster.warm_up([worker.id for worker in workers])
    ring = Ring.even(state.slices, workers)
    owners = ring.owners()
    share = assign(owners, ring_replicas(ring, owners, config.replicas), workers)
    return ring, Plan(state.version, state.slices, tuple(workers), dict.fromkeys(state.layouts, share))
