"""How a keyed step's rows get to its instances: which way is chosen, and to which instance a row goes."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from springtide.dataflow.graph import Keyed, Sides
from springtide.engine.epoch import shuffle
from springtide.engine.epoch.shuffle import RowShuffle, _instance_of
from springtide.engine.worker.one_side import OneSide
from springtide.engine.worker.parcel import INSTANCE
from springtide.engine.worker.prepare import HASH
from springtide.ids import InstanceId, WorkerId
from springtide.plan.plan import OperatorPlan

A, B = WorkerId("a"), WorkerId("b")
NODE = cast(Keyed, SimpleNamespace(name="count", parents=("rows",), key=("id",)))
SIDES = Sides("rows", ("left", "right"), (("id",), ("k",)), "count")


COLUMNS = {
    "left": pa.schema({"id": pa.string(), "x": pa.int64()}),
    "right": pa.schema({"k": pa.string(), "id": pa.int32()}),
}
STRUCTS = [pa.field("__side_0", pa.struct({"x": pa.int64()})), pa.field("__side_1", pa.struct({"id": pa.int32()}))]


@dataclass(frozen=True)
class Task:
    """Stands in for the function that prepares rows, and for the one that updates state."""

    name: str
    key: tuple[str, ...] = ("id",)
    rows: pa.Schema = field(default_factory=lambda: pa.schema([("id", pa.string())]))
    traffic: bool = False
    written: str | None = None
    prepare: "Task | None" = None
    side: OneSide | None = None


class Graph(dict[str, Any]):
    """Steps by name."""

    def __init__(self, way: Any, *, of_sources: bool) -> None:
        super().__init__(rows=way)
        self.of_sources = of_sources

    def reads_sources(self, step: str) -> bool:
        return self.of_sources


class Frame:
    """Notes what is done to it, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def union(self, other: "Frame") -> "Frame":
        return self.noted(("union", *other.done))

    def noted(self, what: Any) -> "Frame":
        self.done.append(what)
        return self


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be done to a DataFrame is noted."""
    monkeypatch.setattr(shuffle, "select", lambda rows, columns: rows.noted(("select", *columns)))
    monkeypatch.setattr(shuffle, "map_in_arrow", lambda rows, function, output: rows.noted(function))
    monkeypatch.setattr(shuffle, "in_batches", lambda rows: rows)
    monkeypatch.setattr(shuffle, "by_number", lambda rows, count, column: rows.noted(("shuffle", count, column)))


@dataclass
class Step:
    """A keyed step with its rows in a frame, or in blocks that the step before has written."""

    key: pa.DataType = field(default_factory=pa.string)
    owners: tuple[WorkerId, ...] = (A, B)
    replicas: tuple[tuple[WorkerId, ...], ...] = ()
    traffic: bool = False
    written: tuple[str, ...] = ()
    parts: tuple[WorkerId, ...] = (A, B)
    way: Any = None

    def shuffled(self, *, few_rows: bool) -> list[Any]:
        frame = Frame()
        share = OperatorPlan(tuple(map(InstanceId, range(len(self.owners)))), self.owners, self.replicas)
        frames = SimpleNamespace(
            written_for=lambda step: self.written,
            input_of=lambda step: frame,
            sides_of=lambda step: [frame, Frame()],
            bound=SimpleNamespace(graph=Graph(self.way, of_sources=not self.traffic), schemas=COLUMNS),
            parts=lambda written, by_worker: [SimpleNamespace(worker=worker) for worker in self.parts],
            read=lambda parts, rows: (frame, "blocks"),
        )
        sides = [] if self.way is None else STRUCTS
        prepare = Task("prepare", rows=pa.schema([("id", self.key), *sides]), traffic=self.traffic)
        pool = SimpleNamespace(spread=self._noted("spread"), place=self._noted("place"))
        way = RowShuffle(cast(Any, frames), cast(Any, pool), share, cast(Any, prepare), cast(Any, Task("update")))
        way(NODE, few_rows=few_rows)
        return frame.done

    @staticmethod
    def _noted(what: str) -> Any:
        def note(frame: Frame, *workers: Any) -> Frame:
            return frame.noted((what, *workers))

        return note


def selected(done: list[Any]) -> list[str]:
    """The expressions of the first selection."""
    return next(list(each[1:]) for each in done if isinstance(each, tuple) and each[0] == "select")


def names(done: list[Any]) -> list[str]:
    return [each.name if isinstance(each, Task) else each[0] for each in done]


def test_few_rows_of_a_source_are_prepared_by_the_task_that_updates() -> None:
    done = Step().shuffled(few_rows=True)
    assert names(done) == ["spread", "select", "select", "shuffle", "place", "update"]
    assert done[-1].prepare.name == "prepare"
    assert done[3:5] == [("shuffle", 2, INSTANCE), ("place", (A, B))]


@pytest.mark.parametrize(
    "step", [Step(replicas=((B,), (A,))), Step(traffic=True)], ids=["standbys get them too", "bytes are told"]
)
def test_few_rows_are_prepared_before_the_shuffle_where_more_is_made_of_them(step: Step) -> None:
    done = step.shuffled(few_rows=True)
    assert names(done)[-4:] == ["prepare", "shuffle", "place", "update"]
    assert done[-1].prepare is None


def test_many_rows_are_prepared_before_the_shuffle() -> None:
    assert names(Step().shuffled(few_rows=False)) == ["spread", "select", "prepare", "shuffle", "place", "update"]


def test_what_a_keyed_step_has_written_is_read_where_it_lies() -> None:
    assert names(Step(traffic=True).shuffled(few_rows=False))[0] == "select", "not spread"


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()], ids=str)
def test_many_rows_of_several_inputs_are_prepared_by_themselves(kind: pa.DataType) -> None:
    """A column may have the name that the key has on the first side."""
    done = Step(kind, way=SIDES).shuffled(few_rows=False)
    assert names(done) == ["spread", "select", "prepare", "union", "shuffle", "place", "update"]
    hashed = [[], []] if kind == pa.int64() else [[f"xxhash64(`{key}`) AS `{HASH}`"] for key in ("id", "k")]
    assert selected(done) == [*hashed[0], "`id` AS `id`", "`x` AS `__own_0`"]
    union = next(each for each in done if isinstance(each, tuple) and each[0] == "union")
    assert selected(list(union[1:])) == [*hashed[1], "`k` AS `id`", "`id` AS `__own_0`"]
    prepared = [each.side.number for each in (*done, *union) if isinstance(each, Task) and each.side is not None]
    assert prepared == [0, 1]


def test_few_rows_of_several_inputs_go_together() -> None:
    assert names(Step(way=SIDES).shuffled(few_rows=True)) == [
        "spread",
        "select",
        "select",
        "shuffle",
        "place",
        "update",
    ]


def test_whole_numbers_are_hashed_in_python_and_others_by_spark() -> None:
    assert selected(Step(pa.int64()).shuffled(few_rows=False)) == ["`id`"]
    assert selected(Step(pa.string()).shuffled(few_rows=False)) == [f"xxhash64(`id`) AS `{HASH}`", "`id`"]


@pytest.mark.parametrize(("kind", "name"), [(pa.float32(), "float"), (pa.float64(), "double")])
def test_zero_has_one_hash_whatever_its_sign(kind: pa.DataType, name: str) -> None:
    assert selected(Step(kind).shuffled(few_rows=False))[0] == f"xxhash64(if(`id` = 0, {name}(0), `id`)) AS `{HASH}`"


def test_blocks_are_read_by_the_task_that_prepares_their_rows() -> None:
    done = Step(pa.int64(), traffic=True, written=("block",)).shuffled(few_rows=False)
    assert names(done) == ["prepare", "shuffle", "place", "update"]
    assert done[0].written == "blocks"


@pytest.mark.parametrize(
    ("step", "direct"),
    [
        (Step(pa.int64(), owners=(A,), traffic=True, written=("block",), parts=(A,)), True),
        (Step(pa.int64(), owners=(B,), traffic=True, written=("block",), parts=(A,)), False),
        (Step(pa.int64(), owners=(A,), replicas=((B,),), traffic=True, written=("block",), parts=(A,)), False),
    ],
    ids=["one instance where the blocks are", "an instance elsewhere", "somebody stands by"],
)
def test_blocks_that_are_all_for_one_instance_need_no_shuffle(step: Step, direct: bool) -> None:
    assert ("shuffle" not in names(step.shuffled(few_rows=True))) == direct


@given(st.integers(0, 7).flatmap(lambda n: st.lists(st.integers(0, 5), min_size=2**n, max_size=2**n)), st.data())
def test_a_row_goes_to_the_instance_that_owns_its_slice(owners: list[int], data: st.DataObject) -> None:
    """Spark's expression, worked out by another engine."""
    hashes = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
    expression = _instance_of(tuple(map(InstanceId, owners))).replace("`", '"')
    rows = pa.table({HASH: pa.array(hashes, pa.int64())})
    found = duckdb.sql(f"SELECT {expression} FROM rows").fetchall() if rows.num_rows else []
    assert [instance for (instance,) in found] == [owners[h % len(owners)] for h in hashes]
