"""Parcels: whatever order a shuffle brings them in, owner and standby see rows in one order."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from springtide import codec
from springtide.engine.wire.commit_record import MapStats
from springtide.engine.worker import parcel as parcels
from springtide.engine.worker import prepare
from springtide.engine.worker.parcel import INSTANCE, pack, parcel, pieces, unpack
from springtide.engine.worker.prepare import HASH, PrepareRows
from springtide.ids import InstanceId
from springtide.plan.routes import Route
from springtide.state.dedupe import DedupeLogic
from springtide.state.logic import Moment


def test_parcels_are_opened_in_the_order_of_their_numbers() -> None:
    tables = [pa.table({"x": [n]}) for n in range(3)]
    sent = [parcel(0, None, pack(table), number=n) for n, table in enumerate(tables)]
    sent += [parcel(0, None, pack(table), number=n, backup=True) for n, table in enumerate(tables)]
    sent.append(parcel(0, codec.dumps(MapStats(3)), None))
    for order in itertools.permutations(sent, len(sent)):
        received = unpack(list(order))
        assert received.arrivals == tables
        assert received.backup == tables
        assert received.stats.rows_in == 3


def test_rows_to_process_and_rows_to_keep_are_told_apart() -> None:
    mine, other = pa.table({"x": [1]}), pa.table({"x": [2]})
    received = unpack([parcel(0, None, pack(other), backup=True), parcel(0, None, pack(mine))])
    assert (received.arrivals, received.backup) == ([mine], [other])


@pytest.mark.parametrize("limit", [1, 300, 5000, 1 << 20])
def test_a_large_table_is_cut_into_pieces_that_follow_each_other(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(parcels, "PIECE_BYTES", limit)
    table = pa.table({"x": range(100), "text": [f"{n}" * (n % 9) for n in range(100)]})
    found = list(pieces(table))
    assert pa.concat_tables(found).equals(table)
    assert all(piece.nbytes <= limit or piece.num_rows == 1 for piece in found)
    assert list(pieces(table.slice(0, 0))) == [table.slice(0, 0)], "nothing is a piece too"


def test_rows_of_a_key_stay_in_order_though_they_travel_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "partition", lambda: 3)
    rows = pa.schema([("k", pa.string()), ("v", pa.int64())])
    logic = DedupeLogic(pa.schema([rows.field("k")]), rows)
    routes = tuple(Route(InstanceId(i), ((4 * i, 4 * i + 4),), False) for i in range(2))
    work = PrepareRows("first", logic, ("k",), rows, 8, routes, Moment())
    columns = {"k": ["a", "b"] * 200, "v": range(400), HASH: np.array([1, -2] * 200, np.int64)}
    batch = pa.RecordBatch.from_pydict(columns)

    def sent() -> list[list[int]]:
        """By instance: what comes in, the parcels in reverse."""
        made = list(work([batch]))
        mine = [[p for p in made if p.column(INSTANCE)[0].as_py() == i][::-1] for i in range(2)]
        return [[v for table in unpack(some).arrivals for v in table.column("v.v").to_pylist()] for some in mine]

    whole = sent()
    assert sum(map(len, whole)) == 400
    monkeypatch.setattr(parcels, "PIECE_BYTES", 700)
    assert len(list(work([batch]))) > 9
    assert sent() == whole
