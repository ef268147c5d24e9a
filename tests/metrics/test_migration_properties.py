"""The measures of migrations of which everything is known, and what holds for all of them."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st
from migration_kit import NOW, SHORT, course, report

from springtide.metrics.migration.course import Course
from springtide.metrics.migration.measures import measure
from springtide.metrics.migration.steadiness import Steadiness
from springtide.metrics.report import EpochReport

eighths = st.integers(1, 24).map(lambda n: n / 8)


@dataclass
class Life:
    """An app that runs one epoch after another, and notes what it does; in eighths of a second, which add up."""

    now: float = 0.0
    reports: list[EpochReport] = field(default_factory=list)
    attempts: Counter[int] = field(default_factory=Counter)
    out_at: dict[int, list[float]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)

    def run(self, epoch: int, took: float, rows: int, *, replayed: bool = False) -> None:
        self.rows.setdefault(epoch, rows)
        self.attempts[epoch] += 1
        self.now += took
        self.out_at.setdefault(epoch, []).append(self.now)
        self.reports.append(report(epoch, self.now, self.rows[epoch], took=took, replayed=replayed))


@dataclass(frozen=True)
class Told:
    """A life with a migration in it, and its measures as its maker knows them."""

    course: Course
    reports: list[EpochReport]
    catchup_s: float
    recovery_s: float
    replayed_rows: int


@st.composite
def restarts(draw: st.DrawFn) -> Told:
    """An app is killed, in an epoch or between two, goes back to a checkpoint, repeats, and goes on."""
    life = Life()
    last = draw(st.integers(0, 8))
    for epoch in range(last + 1):
        life.now += draw(st.integers(0, 4)) / 8
        life.run(epoch, draw(eighths), draw(st.integers(0, 50)))
    life.now += draw(eighths)
    asked, begun = life.now, last
    under_way = draw(st.sampled_from(["nothing", "killed", "finished"]))
    if under_way != "nothing":
        begun = last + 1
    if under_way == "killed":
        life.attempts[begun] += 1
    if under_way == "finished":
        life.now -= 1 / 16
        life.run(begun, draw(eighths), draw(st.integers(0, 50)))
        last = begun
    checkpoint, swap = draw(st.integers(-1, last)), life.now
    init = life.now = swap + draw(eighths)
    done = init + draw(st.integers(0, 160)) / 8
    for epoch in range(checkpoint + 1, last + 1):
        life.run(epoch, draw(eighths), 0, replayed=True)
    for epoch in range(last + 1, last + 200):
        few = epoch < last + 5
        life.run(epoch, draw(eighths) if few else 1.0, draw(st.integers(0, 50)) if few else 10)
        if life.now > done + 1:
            break
    again = [e for e in life.attempts if life.attempts[e] > 1]
    out = [min(t for t in life.out_at[e] if t > init) for e in again] or [asked]
    if under_way == "finished" and not again:
        out = life.out_at[begun]
    return Told(
        course("restart", asked, done, begun, swap=swap, init=init, done=done),
        life.reports,
        max(out) - asked,
        max((max(life.out_at[e]) for e in again), default=asked) - asked,
        sum(life.rows[e] * (life.attempts[e] - 1) for e in again),
    )


@settings(max_examples=150, deadline=None)
@given(told=restarts(), seed=st.integers(0, 99))
def test_a_restart_is_measured_as_it_was(told: Told, seed: int) -> None:
    """In whatever order reports come, and though some come twice."""
    reports = [*told.reports, *told.reports[::3]]
    random.Random(seed).shuffle(reports)
    found = measure(told.course, reports, SHORT)
    assert (found.catchup_s, found.recovery_s) == (told.catchup_s, told.recovery_s)
    assert found.replayed_rows == told.replayed_rows


@settings(max_examples=60, deadline=None)
@given(told=restarts(), strategy=st.sampled_from(["restart", "capture", "drain", "lazy"]), noted=st.booleans())
def test_what_is_known_stays_as_it_is_when_more_is_reported(told: Told, strategy: str, noted: bool) -> None:
    """The ledger may be written as soon as all is known."""
    asked = replace(told.course, strategy=strategy, last_begun=told.course.last_begun if noted else None)
    final, rows = measure(asked, told.reports, SHORT).to_json(), 0
    for count in range(len(told.reports)):
        early = measure(asked, told.reports[:count], SHORT).to_json()
        assert {n: v for n, v in early.items() if v not in (None, final[n]) and n != "replayed_rows"} == {}
        assert rows <= early["replayed_rows"] <= final["replayed_rows"]
        rows = early["replayed_rows"]


@settings(max_examples=60, deadline=None)
@given(
    told=restarts(), shift=st.integers(-(2**20), 2**20), strategy=st.sampled_from(["restart", "capture", "handover"])
)
def test_another_clock_changes_nothing(told: Told, shift: int, strategy: str) -> None:
    asked = replace(told.course, strategy=strategy)
    ended_at = None if asked.ended_at is None else asked.ended_at + shift
    phases = {name: at + shift for name, at in asked.phases.items()}
    later = replace(asked, asked_at=asked.asked_at + shift, ended_at=ended_at, phases=phases)
    reports = [replace(r, ended_at=r.ended_at + shift) for r in told.reports]
    assert measure(later, reports, SHORT) == measure(asked, told.reports, SHORT)


@settings(max_examples=50, deadline=None)
@given(
    gaps=st.lists(st.integers(2, 11), min_size=150, max_size=150),
    asked=st.integers(160, 400),
    lasted=st.integers(0, 200),
)
def test_a_flow_that_never_stops_stays_undisturbed(gaps: list[int], asked: int, lasted: int) -> None:
    """A live migration over epochs of 0.25 to 1.4 s, with as many rows as their time has: ten an eighth."""
    life = Life()
    for epoch, gap in enumerate([*gaps, *gaps, *gaps]):
        life.run(epoch, gap / 8, gap * 10)
    steadiness = Steadiness(window_s=30.0, expected_rows_per_s=80.0)
    found = measure(course("progressive", asked / 8, (asked + lasted) / 8), life.reports, steadiness)
    assert found.restore_s is not None
    assert found.restore_s <= max(gaps) / 8
    assert found.catchup_s is not None
    assert found.catchup_s <= max(gaps) / 8
    assert (found.drain_s, found.recovery_s, found.stabilise_s, found.replayed_rows) == (0.0, None, 0.0, 0)


@settings(max_examples=100, deadline=None)
@given(
    reports=st.lists(
        st.builds(
            report,
            st.integers(0, 9),
            st.integers(0, 160).map(lambda n: n / 8),
            st.integers(0, 9),
            took=eighths,
            replayed=st.booleans(),
            retries=st.integers(0, 2),
        ),
        max_size=20,
    ),
    strategy=st.sampled_from(["restart", "drain", "capture", "handover", "partial_pause"]),
    phases=st.dictionaries(
        st.sampled_from(["prepare", "swap", "init", "copying", "moving"]), st.integers(0, 160).map(float)
    ),
    ended=st.none() | st.integers(0, 20).map(float),
    last=st.none() | st.integers(0, 9),
)
def test_whatever_is_reported_nothing_is_negative(
    reports: list[EpochReport], strategy: str, phases: dict[str, float], ended: float | None, last: int | None
) -> None:
    found = measure(course(strategy, 10.0, ended, last, **phases), reports, SHORT)
    assert all(value is None or value >= 0 for value in found.to_json().values())
    assert found.replayed_rows <= sum(r.rows_in * (1 + max(1, r.retries)) for r in reports if r.ended_at > NOW + 10)
    fewer = measure(course(strategy, 10.0, ended, last, **phases), reports, SHORT, retries_count=False)
    assert fewer.replayed_rows <= found.replayed_rows
