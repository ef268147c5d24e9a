"""The task scheduler: an instance goes where the least CPU is in use (section 4 of Stream Economics)."""

from collections.abc import Collection, Mapping, Sequence
from random import Random

from springtide.policies.shedding.cpu import CORE
from springtide.policies.shedding.model import Machine

EQUAL = 1e-9


def place(
    cpu: float | None,
    machines: Sequence[Machine],
    random: Random,
    *,
    promised: Mapping[str, float] | None = None,
    prefer: Collection[str] = (),
    avoid: Collection[str] = (),
) -> str | None:
    """The machine for an instance that takes this many cores; `None` stands for an instance that nobody knows yet.

    Least in use is the smallest share of a machine's cores, all processes counted; equals draw lots. An unknown
    instance counts as a full core, when it is placed and, until it is measured, in `promised`: the cores by machine
    that placed instances will take and that are not in use yet (less than 0 where some leave).

    Only preferred machines are looked at, unless none of them has room. Machines to avoid are never taken: a
    moved instance does not go back to the one that it leaves. None, if no machine is left.
    """
    needed = CORE if cpu is None else cpu
    waiting = promised or {}
    open_ = [machine for machine in machines if machine.id not in avoid]
    used = {machine.id: max(0.0, machine.cpu_in_use + waiting.get(machine.id, 0.0)) for machine in open_}
    preferred = [m for m in open_ if m.id in prefer and m.cores - used[m.id] >= needed - EQUAL]
    shares = {m.id: used[m.id] / m.cores if m.cores > 0 else float("inf") for m in preferred or open_}
    if not shares:
        return None
    least = min(shares.values())
    return random.choice(sorted(name for name, share in shares.items() if share <= least + EQUAL))


def place_all(
    wanted: Sequence[tuple[float | None, Collection[str]]],
    machines: Sequence[Machine],
    random: Random,
    *,
    promised: Mapping[str, float] | None = None,
) -> tuple[str | None, ...]:
    """Machines for several instances, one after the other: each has its cores and the machines that it prefers."""
    waiting = dict(promised or {})
    found = []
    for cpu, prefer in wanted:
        machine = place(cpu, machines, random, promised=waiting, prefer=prefer)
        if machine is not None:
            waiting[machine] = waiting.get(machine, 0.0) + (CORE if cpu is None else cpu)
        found.append(machine)
    return tuple(found)
