"""Whether a change did what it was for."""

from springtide.metrics.snapshot import Snapshot
from springtide.policies.decision import Decision, Hold, Rebalance, Scale
from springtide.policies.past import AppState

NOTICEABLE = 0.05
"""A change of less than this share is none."""
CALM_S = 5.0
"""A lag that is no reason to worry."""


def gauge(snapshot: Snapshot) -> AppState:
    """How the app does in a snapshot."""
    fed = {edge.downstream for edge in snapshot.edges if edge.upstream in {s.name for s in snapshot.sources}}
    rows = {name: sum(i.records_in for i in snapshot.operators.get(name, ())) for name in fed}
    return AppState(
        len(snapshot.workers),
        max(rows.values(), default=0.0) / snapshot.window_s,
        snapshot.arriving,
        snapshot.lag_s,
        snapshot.lag_rows,
        imbalance(snapshot),
        crossing(snapshot),
    )


def imbalance(snapshot: Snapshot) -> float:
    """The busiest worker's load over the mean; 1 if all have the same, or there is none."""
    load: dict[str, float] = {worker.id: 0.0 for worker in snapshot.workers}
    for instance in snapshot.instances:
        load[instance.worker] = load.get(instance.worker, 0.0) + instance.cpu_s
    mean = sum(load.values()) / len(load) if load else 0.0
    return max(load.values()) / mean if mean > 0 else 1.0


def crossing(snapshot: Snapshot) -> float:
    """The share of bytes between keyed steps that goes from one worker to another; 0 if there are none."""
    owner = {(s.operator, s.number): s.owner for s in snapshot.slices}
    total = sum(snapshot.traffic.values())
    stays = sum(rate for (step, sender, to), rate in snapshot.traffic.items() if owner.get((step, to)) == sender)
    return 1 - stays / total if total > 0 else 0.0


def helped(decision: Decision, before: AppState, after: AppState) -> bool:
    """Did a change that is over do what it was for?

    More workers: less lag, or more rows; fewer: no lag to speak of; slices moved: a more even load, or
    fewer bytes between workers.
    """
    if isinstance(decision, Hold):
        return True
    if isinstance(decision, Rebalance):
        evener = after.imbalance < before.imbalance * (1 - NOTICEABLE / 5)
        return evener or after.crossing < before.crossing
    assert isinstance(decision, Scale)
    if decision.workers < before.workers:
        return after.lag_s <= max(CALM_S, before.lag_s * (1 + NOTICEABLE))
    faster = after.throughput > before.throughput * (1 + NOTICEABLE)
    return faster or after.lag_s < before.lag_s * (1 - NOTICEABLE) or after.lag_s <= CALM_S
