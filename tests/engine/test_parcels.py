"""Parcels: whatever order a shuffle brings them in, owner and standby see rows in one order."""

import itertools

import pyarrow as pa

from springtide.engine.record import MapStats
from springtide.engine.worker.parcel import pack, parcel, unpack


def test_parcels_are_opened_in_the_order_of_their_numbers() -> None:
    tables = [pa.table({"x": [n]}) for n in range(3)]
    sent = [parcel(0, None, pack(table), number=n) for n, table in enumerate(tables)]
    sent += [parcel(0, None, pack(table), number=n, backup=True) for n, table in enumerate(tables)]
    sent.append(parcel(0, MapStats(3).to_json(), None))
    for order in itertools.permutations(sent, len(sent)):
        received = unpack(list(order))
        assert received.arrivals == tables
        assert received.backup == tables
        assert received.stats.rows_in == 3


def test_rows_to_process_and_rows_to_keep_are_told_apart() -> None:
    mine, other = pa.table({"x": [1]}), pa.table({"x": [2]})
    received = unpack([parcel(0, None, pack(other), backup=True), parcel(0, None, pack(mine))])
    assert (received.arrivals, received.backup) == ([mine], [other])
