"""The warm-up of a moved instance: until it settles, its machine takes no chances (section 6 of Stream Economics)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from springtide.policies.shedding.accuracy import measured
from springtide.policies.shedding.model import InstanceKey, Model

TIMEOUT_S = 60.0
"""Nobody warms up for longer."""
STEADY = 0.15
"""CPU that changes by less than this share from one cycle to the next has settled."""
NEARLY = 0.95
"""This much of its minimum accuracy is enough: what is shed by chance is more in one cycle and less in the next."""


@dataclass(frozen=True)
class WarmUp:
    """An instance that was moved or started a short time ago."""

    key: InstanceKey
    since_s: float
    """When it began, by the clock that `still_warming` is given."""
    cpu: float | None = None
    """Cores in use in the last cycle; none was measured yet if it is None."""
    machine: str | None = None
    """Where it was moved to."""


def still_warming(
    warmups: Iterable[WarmUp],
    model: Model,
    now_s: float,
    *,
    timeout_s: float = TIMEOUT_S,
    unseen: Collection[str] = (),
) -> tuple[WarmUp, ...]:
    """Those that go on: accuracy below the minimum or CPU that still changes, and time left.

    An instance that the model does not have any more is done. Of the tasks that are `unseen` nothing was measured in
    this cycle, so their instances go on.
    """
    accuracy = measured(model).current
    instances: Mapping[InstanceKey, float] = dict(zip(model.keys, model.cpu.tolist(), strict=True))
    found = []
    for each in warmups:
        cpu = instances.get(each.key)
        if cpu is None or now_s - each.since_s >= timeout_s:
            continue
        if each.key[0] in unseen:
            found.append(each)
            continue
        task = model.graph.index[each.key[0]]
        settled = each.cpu is not None and abs(cpu - each.cpu) <= STEADY * max(cpu, each.cpu)
        if not settled or accuracy[task] < NEARLY * model.graph.minima[task]:
            found.append(replace(each, cpu=cpu))
    return tuple(found)
