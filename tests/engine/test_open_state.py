"""Opening state on a worker: its own blocks, parts of a neighbour's, backups; and what is not there, exactly."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from springtide.blocks import local
from springtide.blocks.block import BACKUP, PART, RUN, BlockRef
from springtide.blocks.errors import BlockCorrupt
from springtide.blocks.local import LocalBlocks
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import LocalStore
from springtide.engine.worker.open_state import Behind, Missing, Opening, Parts
from springtide.ids import Epoch, InstanceId, SliceId, WorkerId
from springtide.state.chain import Chain
from springtide.state.layout import Layout
from springtide.state.logic import Moment
from springtide.state.run import Run, merge

SLICES = 8
EVERY = frozenset(map(SliceId, range(SLICES)))
LAYOUT = Layout(pa.schema([("k", pa.int64())]), pa.schema([("n", pa.int64())]))
HERE, THERE = WorkerId("here"), WorkerId("there")


def some(*slices: int) -> frozenset[SliceId]:
    return frozenset(map(SliceId, slices))


def state(slices: Iterable[int], value: int = 0) -> pa.Table:
    """Two keys a slice: 10 s and 10 s + 1."""
    keys = [10 * s + i for s in sorted(slices) for i in range(2)]
    where = pa.array([((k // 10) << 61) + k for k in keys], pa.uint64())
    return pa.table({"$position": where, "k.k": keys, "s.n": [value] * len(keys)}, schema=LAYOUT.schema)


class Place:
    """One worker's directory, another's, and the durable store that both share."""

    def __init__(self, root: Path) -> None:
        self.durable = LocalStore(root / "durable")
        self.here = LocalBlocks(root / "here", self.durable, HERE)
        self.there = LocalBlocks(root / "there", self.durable, THERE)

    def run(self, slices: Iterable[int] = EVERY, *, at: LocalBlocks | None = None, value: int = 0) -> BlockRef:
        """A run that this worker wrote, or another."""
        return self._write(at or self.here, state(slices, value), RUN, slices)

    def part(self, slices: Iterable[int]) -> BlockRef:
        """A copy of some slices, on this worker only."""
        return self._write(self.here, state(slices), PART, slices, durable=False)

    def backup(self, slices: Iterable[int]) -> BlockRef:
        return self._write(self.here, state(slices), BACKUP, (), durable=False)

    def _write(
        self, at: LocalBlocks, table: pa.Table, kind: str, slices: Iterable[int], *, durable: bool = True
    ) -> BlockRef:
        return at.write(
            table,
            operator="counts",
            epoch=Epoch(3),
            instance=InstanceId(0),
            kind=kind,
            slices=SliceSet.of(slices),
            durable=durable,
        )

    def opening(self, parts: Parts | None = None, *, durable: bool = False) -> Opening:
        """As a process does that has verified nothing yet."""
        local._verified.clear()
        opening = Opening(self.here, LAYOUT, SLICES, parts or {})
        opening.durable = durable
        return opening

    def damage(self, ref: BlockRef) -> None:
        """Flip one bit."""
        path = self.here.directory / ref.name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))

    def remove(self, ref: BlockRef) -> None:
        (self.here.directory / ref.name).unlink()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(local, "_verified", {})
    return Place(tmp_path)


def seen(runs: list[Run]) -> list[int]:
    """The keys that can be found in some runs, each by how many of them count for it."""
    rows = state(EVERY)
    where, keys = rows.column("$position").to_numpy(), LAYOUT.keys_of(rows)
    hits = [Chain([run], LAYOUT).find(where, keys).known for run in runs]
    return [key for hit in hits for key, found in zip(rows.column("k.k").to_pylist(), hit, strict=True) if found]


def keys_of(slices: Iterable[int]) -> list[int]:
    return state(slices).column("k.k").to_pylist()  # type: ignore[no-any-return]


def test_a_block_of_its_own_counts_for_the_slices_that_are_wanted(place: Place) -> None:
    ref = place.run()
    opening = place.opening()
    (run,) = opening.runs([ref], some(1, 5))
    assert seen([run]) == keys_of(some(1, 5))
    assert opening.counted[run.name] == (ref.name, SliceSet.parse("1,5"))
    assert opening.durable_reads == 0


def test_a_whole_block_needs_no_mask(place: Place) -> None:
    ref = place.run()
    (run,) = place.opening().runs([ref], EVERY)
    assert run.live is None
    left = ref.without(some(7))
    assert left is not None
    (run,) = place.opening().runs([left], EVERY)
    assert seen([run]) == keys_of(EVERY - {7}), "a block that lost a slice still has its rows"


def test_runs_come_oldest_first_and_those_that_do_not_concern_are_left_out(place: Place) -> None:
    chain = [place.run(), place.run(some(0, 1)), place.run(some(2, 3), value=7)]
    opening = place.opening()
    runs = opening.runs(chain, some(2))
    assert [opening.counted[run.name] for run in runs] == [
        (chain[0].name, SliceSet.parse("2")),
        (chain[2].name, SliceSet.parse("2")),
    ]


def test_parts_that_cover_what_is_wanted_stand_for_their_run(place: Place) -> None:
    ref = place.run(at=place.there)
    part = place.part(some(1, 2, 3))
    opening = place.opening({ref.name: (part,)})
    runs = opening.runs([ref], some(1, 3))
    assert seen(runs) == keys_of(some(1, 3))
    assert [opening.counted[run.name] for run in runs] == [(ref.name, SliceSet.parse("1,3"))], (
        "replaced is the run, not the part"
    )
    assert opening.durable_reads == 0


def test_two_parts_of_one_block_count_for_their_own_slices(place: Place) -> None:
    ref = place.run(at=place.there)
    parts = (place.part(some(0, 1)), place.part(some(2, 3)))
    opening = place.opening({ref.name: parts})
    runs = opening.runs([ref], some(1, 2, 3))
    assert seen(runs) == keys_of(some(1, 2, 3))
    assert [opening.counted[run.name] for run in runs] == [
        (ref.name, SliceSet.parse("1")),
        (ref.name, SliceSet.parse("2-3")),
    ]
    assert len({run.name for run in runs}) == 2, "told apart, though they are of one block"


def test_a_slice_that_two_parts_have_counts_once(place: Place) -> None:
    ref = place.run(at=place.there)
    opening = place.opening({ref.name: (place.part(some(0, 1)), place.part(some(1, 2)))})
    runs = opening.runs([ref], some(0, 1, 2))
    assert seen(runs) == keys_of(some(0, 1, 2))


def test_what_parts_do_not_cover_is_missing_exactly(place: Place) -> None:
    first, second = place.run(at=place.there), place.run(some(4, 5, 6), at=place.there)
    opening = place.opening({first.name: (place.part(some(0, 1, 4, 5)),), second.name: (place.part(some(4)),)})
    with pytest.raises(Missing) as caught:
        opening.runs([first, second], some(0, 2, 4, 5))
    assert caught.value.slices == some(2, 5), "2 of the first, 5 of the second"


def test_with_the_durable_store_what_parts_do_not_cover_is_read_once_and_counted(place: Place) -> None:
    ref = place.run(at=place.there)
    opening = place.opening({ref.name: (place.part(some(0, 1)),)}, durable=True)
    runs = opening.runs([ref], some(0, 2))
    assert sorted(seen(runs)) == keys_of(some(0, 2)), "and nothing counts twice"
    assert opening.durable_reads == 1
    again = place.opening()
    assert seen(again.runs([ref], some(0, 2))) == keys_of(some(0, 2)), "it is here now"
    assert again.durable_reads == 0


def test_a_damaged_block_of_its_own_counts_as_absent(place: Place) -> None:
    ref = place.run()
    place.damage(ref)
    with pytest.raises(Missing) as caught:
        place.opening().runs([ref], some(3, 4))
    assert caught.value.slices == some(3, 4)
    opening = place.opening(durable=True)
    assert seen(opening.runs([ref], some(3, 4))) == keys_of(some(3, 4))
    assert opening.durable_reads == 1


def test_a_part_helps_out_for_a_damaged_block(place: Place) -> None:
    ref = place.run()
    place.damage(ref)
    opening = place.opening({ref.name: (place.part(some(3)),)})
    assert seen(opening.runs([ref], some(3))) == keys_of(some(3))


@pytest.mark.parametrize("harm", [Place.damage, Place.remove])
def test_a_part_that_is_damaged_or_gone_counts_as_absent(place: Place, harm: object) -> None:
    assert callable(harm)
    ref = place.run(at=place.there)
    good, bad = place.part(some(0, 1)), place.part(some(2, 3))
    harm(place, bad)
    with pytest.raises(Missing) as caught:
        place.opening({ref.name: (good, bad)}).runs([ref], some(1, 2))
    assert caught.value.slices == some(2)
    opening = place.opening({ref.name: (good, bad)}, durable=True)
    assert sorted(seen(opening.runs([ref], some(1, 2)))) == keys_of(some(1, 2))
    assert opening.durable_reads == 1


def test_a_block_that_is_nowhere_is_an_error_that_says_so(place: Place) -> None:
    ref = place.run()
    place.remove(ref)
    place.durable.delete([ref.path])
    with pytest.raises(BlockCorrupt, match="no durable copy"):
        place.opening(durable=True).runs([ref], EVERY)


def behind(*kept: BlockRef | None, slices: frozenset[SliceId] = EVERY) -> Behind:
    return Behind(HERE, slices, (), tuple((Moment(number), ref) for number, ref in enumerate(kept)))


def test_missed_epochs_come_in_order_with_the_rows_of_the_wanted_slices(place: Place) -> None:
    first, last = place.backup(some(0, 1, 2)), place.backup(some(2, 3))
    found = place.opening().missed(behind(first, None, last, slices=some(1, 2, 3)), some(0, 1, 2))
    assert [moment.watermark_us for moment, _ in found] == [0, 1, 2]
    rows = [[table.column("k.k").to_pylist() for table in tables] for _, tables in found]
    assert rows == [[keys_of(some(1, 2))], [], [keys_of(some(2))]]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("harm", [Place.damage, Place.remove])
def test_a_backup_that_is_damaged_or_gone_makes_its_slices_missing(place: Place, harm: object, durable: bool) -> None:
    """There is no durable copy of a backup; the durable copy of the state makes up for it."""
    assert callable(harm)
    good, bad = place.backup(EVERY), place.backup(EVERY)
    harm(place, bad)
    with pytest.raises(Missing) as caught:
        place.opening(durable=durable).missed(behind(good, bad, slices=some(1, 2, 3)), some(2, 3, 4))
    assert caught.value.slices == some(2, 3)


@pytest.mark.parametrize("harm", [None, Place.damage, Place.remove])
def test_rows_that_nobody_has_seen_yet_are_read_from_the_durable_store(place: Place, harm: object) -> None:
    pending = place.run(EVERY)
    if callable(harm):
        harm(place, pending)
    stalled = Behind(HERE, some(1, 2), (), ((Moment(), pending),), owed=True)
    ((_, (rows,)),) = place.opening().missed(stalled, some(2, 3))
    assert rows.column("k.k").to_pylist() == keys_of(some(2))


def test_rows_of_stalled_slices_are_set_apart(place: Place) -> None:
    tables = [state(some(0, 1)), state(some(1, 2))]
    now, later = place.opening().parted(tables, some(1, 5))
    assert [t.column("k.k").to_pylist() for t in now] == [keys_of(some(0)), keys_of(some(2))]
    assert [t.column("k.k").to_pylist() for t in later] == [keys_of(some(1))] * 2
    assert place.opening().parted(tables, frozenset()) == (tables, [])


def test_parts_and_backups_are_not_in_the_durable_store(place: Place) -> None:
    run, part, backup = place.run(), place.part(EVERY), place.backup(EVERY)
    names = place.durable.list("blocks")
    assert [ref.name in {n.rpartition("/")[2] for n in names} for ref in (run, part, backup)] == [True, False, False]


def test_where_nothing_is_kept_a_part_is_not_there(tmp_path: Path, place: Place) -> None:
    nowhere = LocalBlocks(tmp_path / "nowhere", place.durable, keep=False)
    ref = nowhere.write(
        state(EVERY), operator="counts", epoch=Epoch(0), instance=InstanceId(0), kind=PART, durable=False
    )
    assert nowhere.local(ref) is None
    assert not nowhere.directory.exists()


slice_sets = st.sets(st.sampled_from(sorted(EVERY)), min_size=1).map(frozenset)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.lists(slice_sets, max_size=4), bad=st.sets(st.integers(0, 3)), wanted=slice_sets)
def test_every_wanted_slice_is_served_once_or_named_as_missing(
    place: Place, cut: list[frozenset[SliceId]], bad: set[int], wanted: frozenset[SliceId]
) -> None:
    ref = place.run(at=place.there)
    parts = tuple(place.part(slices) for slices in cut)
    for number in bad & set(range(len(parts))):
        place.damage(parts[number])
    whole = frozenset().union(*(slices for number, slices in enumerate(cut) if number not in bad))
    opening = place.opening({ref.name: parts})
    if wanted <= whole:
        runs = opening.runs([ref], wanted)
        assert sorted(seen(runs)) == keys_of(wanted)
        counted = [opening.counted[run.name][1] for run in runs]
        assert sorted(s for some in counted for s in some) == sorted(wanted)
    else:
        with pytest.raises(Missing) as caught:
            opening.runs([ref], wanted)
        assert caught.value.slices == wanted - whole


def test_a_run_of_an_earlier_release_is_opened_with_wide_columns(place: Place) -> None:
    """Its strings have 32-bit offsets, and newer runs with 64-bit ones lie on top of it."""
    layout = Layout(pa.schema([("k", pa.string())]), pa.schema([("l", pa.list_(pa.string()))]))
    old = pa.schema([layout.schema.field("$position"), ("k.k", pa.string()), ("s.l", pa.list_(pa.string()))])

    def written(schema: pa.Schema, keys: list[str], text: str) -> BlockRef:
        columns = {"$position": [ord(k) for k in keys], "k.k": keys, "s.l": [[text]] * len(keys)}
        return place._write(place.here, pa.table(columns, schema=schema), RUN, EVERY)

    chain = [written(old, ["a", "b"], "old"), written(layout.schema, ["b", "c"], "new")]
    opening = Opening(place.here, layout, SLICES, {})
    runs = opening.runs(chain, EVERY)
    assert [run.rows.schema.types for run in runs] == [layout.schema.types] * 2
    merged = merge(runs, whole=True)
    assert merged.column("k.k").to_pylist() == ["a", "b", "c"]
    assert merged.column("s.l").to_pylist() == [["old"], ["new"], ["new"]]
