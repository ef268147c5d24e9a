"""From epoch reports to a snapshot: what the last epochs under one plan add up to."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from springtide.ids import SliceId, WorkerId
from springtide.metrics.report import EpochReport, HostReport, InstanceReport, OperatorReport
from springtide.metrics.snapshot import Edge, HotKey, Instance, MeasuredWorker, Slice, Snapshot, Source


@dataclass(frozen=True)
class Shape:
    """What reports do not say: the graph, who works, and who owns what."""

    edges: tuple[tuple[str, str], ...]
    """From a source or an operator to an operator."""
    workers: tuple[MeasuredWorker, ...]
    """In the ring's order, with nothing measured."""
    owners: Mapping[str, Sequence[WorkerId]] = field(default_factory=dict)
    """By operator: the owner of each slice."""
    pause_s: float = 0.0


def observe(reports: Sequence[EpochReport], shape: Shape, window_s: float) -> Snapshot | None:
    """The snapshot of the last epochs, as far back as the window and the present plan go; None if there are too few.

    The epoch before them says when the window begins and how much waited then.
    """
    found = _known(_window(reports, window_s))
    if len(found) < 2:
        return None
    before, during = found[0], found[1:]
    seconds = max(during[-1].ended_at - before.ended_at, 1e-9)
    sources = _sources(found, seconds)
    fed = {edge[1] for edge in shape.edges if edge[0] in {s.name for s in sources}}
    waiting = sum(source.lag_rows for source in sources)
    instances = tuple(
        instance for step in _steps(during) for instance in _instances(step, during, waiting if step in fed else 0.0)
    )
    return Snapshot(
        at=during[-1].ended_at,
        window_s=seconds,
        epochs=len(during),
        sources=sources,
        edges=_edges(shape, during, instances),
        instances=instances,
        workers=_workers(shape, before, during, instances, seconds),
        slices=_slices(shape, during, seconds),
        traffic=_traffic(during, seconds),
        hot_keys=_hot_keys(during, seconds),
        shed={step: rows / seconds for step, rows in _shed(during).items()},
        pause_s=shape.pause_s,
        epoch_s=sum(report.phases.total_s for report in during) / len(during),
    )


def _window(reports: Sequence[EpochReport], window_s: float) -> list[EpochReport]:
    """The last epochs under one plan within the window, and the one before them."""
    found: list[EpochReport] = []
    for report in reversed([r for r in reports if not r.replayed]):
        found.append(report)
        last = found[0]
        if report.plan != last.plan or last.ended_at - report.ended_at >= window_s:
            break
    return found[::-1]


def _known(found: list[EpochReport]) -> list[EpochReport]:
    """From the first to the last epoch that says what waited at its sources.

    A broker that does not answer for a while must not look like a topic from which all rows are gone.
    """
    known = _knowing(found)
    return found[known[0] : known[-1] + 1] if known else []


def _knowing(found: Sequence[EpochReport]) -> list[int]:
    """Which epochs say what waited at all sources that ever say so."""
    tell = {source.name for report in found for source in report.sources if source.lag_rows is not None}
    return [
        i
        for i, report in enumerate(found)
        if all(source.lag_rows is not None for source in report.sources if source.name in tell)
    ]


def _steps(during: Sequence[EpochReport]) -> list[str]:
    return [operator.step for operator in during[-1].operators]


def _of(step: str, during: Sequence[EpochReport]) -> list[OperatorReport]:
    return [operator for report in during for operator in report.operators if operator.step == step]


def _taken(during: Sequence[EpochReport]) -> dict[str, float]:
    """By source: the rows taken; of several sources, those that can't tell are left out."""
    found: dict[str, float] = {}
    for source in during[-1].sources:
        counts = [s.rows_in for report in during for s in report.sources if s.name == source.name]
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            found[source.name] = sum(known)
        elif len(during[-1].sources) == 1:
            found[source.name] = sum(report.rows_in for report in during)
    return found


def _sources(found: Sequence[EpochReport], seconds: float) -> tuple[Source, ...]:
    """Rates of late: what fell due a moment ago tells more than what did at the window's beginning.

    A source that tells itself how fast rows come in has looked more often than once an epoch.
    """
    at = _last_third(found, len(found) - 1)
    now, earlier = _due(found[at:]), _due(found[_last_third(found, at) : at + 1])
    taken = _taken(found[1:])
    return tuple(
        Source(
            s.name,
            now[s.name] if s.injected_rows_per_s is None else s.injected_rows_per_s,
            float(s.lag_rows or 0),
            s.latency_s or 0.0,
            earlier.get(s.name),
            taken.get(s.name, 0.0) / seconds,
        )
        for s in found[-1].sources
    )


def _last_third(found: Sequence[EpochReport], end: int) -> int:
    """Where a third of the window begins that ends with an epoch."""
    third_s = (found[-1].ended_at - found[0].ended_at) / 3
    known = [i for i in _knowing(found) if i < end]
    return max((i for i in known if found[end].ended_at - found[i].ended_at >= third_s), default=0)


def _due(found: Sequence[EpochReport]) -> dict[str, float]:
    """By source: rows that fell due, a second, after the first of these epochs; nothing if it is the only one."""
    if len(found) < 2:
        return {}
    before, during = found[0], found[1:]
    seconds = max(during[-1].ended_at - before.ended_at, 1e-9)
    lag_before = {source.name: source.lag_rows or 0 for source in before.sources}
    taken = _taken(during)
    return {
        s.name: max(0.0, taken.get(s.name, 0.0) + (s.lag_rows or 0) - lag_before.get(s.name, 0)) / seconds
        for s in during[-1].sources
    }


def _instances(step: str, during: Sequence[EpochReport], waiting: float) -> list[Instance]:
    """An operator's instances; what was measured for the operator as a whole is shared out by rows."""
    useful: dict[int, float] = defaultdict(float)
    records: dict[int, float] = defaultdict(float)
    pushed: dict[int, float] = defaultdict(float)
    cpu: dict[int, float] = defaultdict(float)
    last: dict[int, InstanceReport] = {}
    for operator in _of(step, during):
        rows = sum(i.rows_in for i in operator.instances)
        for i in operator.instances:
            share = i.rows_in / rows if rows else 1 / len(operator.instances)
            useful[i.instance] += i.useful_s + share * operator.map_busy_s
            records[i.instance] += share * operator.rows_in
            pushed[i.instance] += i.rows_out
            cpu[i.instance] += i.cpu_s
            last[i.instance] = i
    total = sum(records.values())
    state = _of(step, during)[-1].state_bytes
    shares = {n: records[n] / total if total else 1 / len(last) for n in last}
    return [
        Instance(
            step,
            n,
            WorkerId(last[n].worker),
            useful[n],
            records[n],
            pushed[n],
            waiting * shares[n],
            cpu[n],
            round(state / len(last)),
        )
        for n in sorted(last)
    ]


def _edges(shape: Shape, during: Sequence[EpochReport], instances: Sequence[Instance]) -> tuple[Edge, ...]:
    """Stateless steps in between show as more or fewer rows than were pushed; parents of one step share the ratio.

    Rows that were shed on the way do not: it is how many there would be without shedding that policies want to know.
    """
    shed = _shed(during)
    pushed: dict[str, float] = defaultdict(float, _taken(during))
    arrived: dict[str, float] = defaultdict(float)
    for instance in instances:
        pushed[instance.operator] += instance.records_out
        arrived[instance.operator] += instance.records_in
    found = []
    for upstream, downstream in shape.edges:
        given = sum(pushed[up] for up, down in shape.edges if down == downstream) - shed.get(downstream, 0)
        found.append(Edge(upstream, downstream, arrived[downstream] / given if given > 0 else 1.0))
    return tuple(found)


def _shed(during: Sequence[EpochReport]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for report in during:
        for operator in report.operators:
            found[operator.step] += operator.shed_rows
    return found


def _workers(
    shape: Shape,
    before: EpochReport,
    during: Sequence[EpochReport],
    instances: Sequence[Instance],
    seconds: float,
) -> tuple[MeasuredWorker, ...]:
    """Each worker's own processor time on its slots, and what others take on its machine."""
    own: dict[WorkerId, float] = defaultdict(float)
    queue: dict[WorkerId, float] = defaultdict(float)
    for instance in instances:
        own[instance.worker] += instance.cpu_s
        queue[instance.worker] += instance.queue_rows
    host_of = {
        WorkerId(i.worker): i.host.host
        for report in during
        for o in report.operators
        for i in o.instances
        if i.host is not None
    }
    by_host: dict[str, float] = defaultdict(float)
    for worker, spent in own.items():
        by_host[host_of.get(worker, "")] += spent
    others = {host: _others(host, [before, *during], spent) for host, spent in by_host.items()}
    return tuple(
        MeasuredWorker(
            w.id,
            w.slots,
            min(1.0, own[w.id] / (seconds * w.slots) + others.get(host_of.get(w.id, ""), 0.0)),
            queue[w.id],
            w.host,
        )
        for w in shape.workers
    )


def _others(host: str, reports: Sequence[EpochReport], own_s: float) -> float:
    """The share of a machine's processors that is neither idle nor ours."""
    seen: list[HostReport] = [
        i.host
        for report in reports
        for o in report.operators
        for i in o.instances
        if i.host is not None and i.host.host == host
    ]
    if len(seen) < 2:
        return 0.0
    first, last = min(seen, key=lambda h: h.total_s), max(seen, key=lambda h: h.total_s)
    there = last.total_s - first.total_s
    return max(0.0, last.busy_s - first.busy_s - own_s) / there if there > 0 else 0.0


def _slices(shape: Shape, during: Sequence[EpochReport], seconds: float) -> tuple[Slice, ...]:
    rows: dict[tuple[str, int], float] = defaultdict(float)
    load: dict[tuple[str, int], float] = defaultdict(float)
    for report in during:
        for operator in report.operators:
            for i in operator.instances:
                for number, count in i.slice_rows:
                    rows[operator.step, number] += count
                    load[operator.step, number] += i.useful_s * count / max(1, i.rows_in)
    return tuple(
        Slice(step, SliceId(number), owner, rows[step, number] / seconds, load[step, number] / seconds)
        for step, owners in shape.owners.items()
        for number, owner in enumerate(owners)
    )


def _traffic(during: Sequence[EpochReport], seconds: float) -> dict[tuple[str, WorkerId, SliceId], float]:
    found: dict[tuple[str, WorkerId, SliceId], float] = defaultdict(float)
    for report in during:
        for operator in report.operators:
            for sent in operator.traffic:
                found[operator.step, WorkerId(sent.worker), SliceId(sent.slice)] += sent.bytes / seconds
    return dict(found)


def _hot_keys(during: Sequence[EpochReport], seconds: float) -> tuple[HotKey, ...]:
    rows: dict[tuple[str, int, str], float] = defaultdict(float)
    for report in during:
        for operator in report.operators:
            for hot in operator.hot_keys:
                rows[operator.step, hot.slice, hot.key] += hot.rows
    most = sorted(rows, key=lambda which: (-rows[which], which))
    return tuple(HotKey(step, SliceId(number), key, rows[step, number, key] / seconds) for step, number, key in most)
