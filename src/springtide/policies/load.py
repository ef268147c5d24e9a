"""What more than one policy asks of a snapshot: how busy slots are, and whether rows are taken as they fall due."""

from springtide.metrics.snapshot import MeasuredWorker, Snapshot
from springtide.policies.words import count, percent


def slots_a_worker(snapshot: Snapshot) -> float:
    """Tasks that a worker runs at once, on average; at least one."""
    return max(1.0, sum(worker.slots for worker in snapshot.workers) / len(snapshot.workers))


def utilisation(snapshot: Snapshot) -> float:
    """The share of all slots' time that was spent on rows; operators share slots in time."""
    offered_s = snapshot.window_s * sum(worker.slots for worker in snapshot.workers)
    return sum(instance.useful_s for instance in snapshot.instances) / offered_s if offered_s > 0 else 0.0


def taken(snapshot: Snapshot) -> float:
    """Rows taken from the sources for each one that fell due; above 1 while a backlog is worked off, 1 if not known.

    Told by the operators that have nothing but sources before them.
    """
    rates = {source.name: source.rate for source in snapshot.sources}
    due = arrived = 0.0
    for name, instances in snapshot.operators.items():
        parents = snapshot.parents(name)
        if parents and all(edge.upstream in rates for edge in parents):
            due += snapshot.window_s * sum(rates[edge.upstream] * edge.ratio for edge in parents)
            arrived += sum(instance.records_in for instance in instances)
    return arrived / due if due > 0 else 1.0


def sheds(snapshot: Snapshot) -> bool:
    """Whether rows were shed."""
    return any(rate > 0 for rate in snapshot.shed.values())


def busy(worker: MeasuredWorker) -> str:
    """How busy a worker is, in words."""
    return f"{worker.id} has {count(worker.queue_rows)} rows waiting and {percent(worker.cpu)} CPU"
