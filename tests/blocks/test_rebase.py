"""Rebasing: some slices go back to an earlier state's runs, all others stay, and order is kept."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from springtide import codec
from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.ids import Epoch, SliceId

SLICES = 8

few = settings(max_examples=60, deadline=None)
some_slices = st.sets(st.integers(0, SLICES - 1).map(SliceId)).map(frozenset)


def a_run(name: str, epoch: int, slices: frozenset[SliceId]) -> BlockRef:
    return BlockRef(name, "counts", Epoch(epoch), 1, 1, 0, SliceSet.of(slices))


def chain(state: OperatorState, slice_id: int) -> list[str]:
    """The runs of one slice, oldest first."""
    return [run.name for run in state.runs if slice_id in run.slices]


@dataclass
class History:
    """A state and all that came before it."""

    states: list[OperatorState] = field(default_factory=lambda: [OperatorState()])
    written: dict[str, frozenset[SliceId]] = field(default_factory=dict)
    """By run: the slices it was written for."""

    @property
    def epoch(self) -> int:
        return len(self.states)

    def commit(self, owner: list[int], fold: list[int], before: OperatorState | None = None) -> None:
        """Each instance puts a run in place of some of its newest ones."""
        after = before = before or self.states[-1]
        for instance in sorted(set(owner)):
            mine = frozenset(SliceId(s) for s, o in enumerate(owner) if o == instance)
            concerned = [run.name for run in before.runs if run.slices & mine]
            gone = concerned[max(0, len(concerned) - fold[instance]) :]
            name = f"{self.epoch}.{instance}"
            self.written[name] = mine
            after = after.replaced(dict.fromkeys(gone, mine), a_run(name, self.epoch, mine))
        self.states.append(after)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Epochs under changing plans, some of which took slices over from an older state."""
    history = History()
    for _ in range(draw(st.integers(1, 6))):
        before = history.states[-1]
        if draw(st.booleans()):
            before = before.rebased(draw(some_slices), draw(st.sampled_from(history.states)))
        owner = draw(st.lists(st.integers(0, 2), min_size=SLICES, max_size=SLICES))
        history.commit(owner, draw(st.lists(st.integers(0, 3), min_size=3, max_size=3)), before)
    return history


@few
@given(histories(), some_slices, st.data())
def test_rebased_slices_have_the_chain_of_the_base_and_the_others_their_own(
    history: History, slices: frozenset[SliceId], data: st.DataObject
) -> None:
    now, base = history.states[-1], data.draw(st.sampled_from(history.states))
    after = now.rebased(slices, base)
    for number in range(SLICES):
        assert chain(after, number) == chain(base if number in slices else now, number)
    assert [run.epoch for run in after.runs] == sorted(run.epoch for run in after.runs)
    names = [run.name for run in after.runs]
    assert len(set(names)) == len(names), "a block is named once, for all slices it counts for"


@few
@given(histories(), some_slices, st.data())
def test_a_run_that_lost_slices_says_so(history: History, slices: frozenset[SliceId], data: st.DataObject) -> None:
    """Else its rows of other slices would be read as if they counted."""
    after = history.states[-1].rebased(slices, data.draw(st.sampled_from(history.states)))
    for run in after.runs:
        assert run.slices <= history.written[run.name]
        assert run.partial or run.slices == history.written[run.name]


@few
@given(histories(), some_slices, some_slices, st.data())
def test_slices_from_different_bases_do_not_disturb_each_other(
    history: History, first: frozenset[SliceId], second: frozenset[SliceId], data: st.DataObject
) -> None:
    second -= first
    one, other = (data.draw(st.sampled_from(history.states)) for _ in range(2))
    after = history.states[-1].rebased(first, one).rebased(second, other)
    for number in range(SLICES):
        source = one if number in first else other if number in second else history.states[-1]
        assert chain(after, number) == chain(source, number)
    assert {r.name: r.slices for r in after.runs} == {
        r.name: r.slices for r in history.states[-1].rebased(second, other).rebased(first, one).runs
    }


@few
@given(histories(), some_slices)
def test_a_state_rebased_on_itself_is_the_same(history: History, slices: frozenset[SliceId]) -> None:
    now = history.states[-1]
    after = now.rebased(slices, now)
    assert {(r.name, r.slices) for r in after.runs} == {(r.name, r.slices) for r in now.runs}


@few
@given(histories(), some_slices, st.data())
def test_keys_and_event_time_are_those_of_now(
    history: History, slices: frozenset[SliceId], data: st.DataObject
) -> None:
    now = OperatorState(history.states[-1].runs, keys=7, newest_us=(99,), watermark_us=50)
    after = now.rebased(slices, data.draw(st.sampled_from(history.states)))
    assert (after.keys, after.newest_us, after.watermark_us) == (7, (99,), 50)
    assert codec.loads(OperatorState, codec.dumps(after)) == after


def test_a_block_of_both_states_counts_for_the_slices_of_both() -> None:
    old = OperatorState((a_run("a", 1, frozenset(map(SliceId, range(4)))),))
    now = old.replaced({"a": frozenset(map(SliceId, (1, 2)))}, a_run("b", 2, frozenset(map(SliceId, (1, 2)))))
    after = now.rebased(frozenset({SliceId(2)}), old)
    assert [(run.name, str(run.slices), run.partial) for run in after.runs] == [("a", "0,2-3", True), ("b", "1", True)]


@few
@given(some_slices, some_slices)
def test_only_and_without_share_a_block_between_them(own: frozenset[SliceId], slices: frozenset[SliceId]) -> None:
    run = a_run("a", 1, own)
    inside, outside = run.only(slices), run.without(slices)
    for part, expected in ((inside, own & slices), (outside, own - slices)):
        if expected == own:
            assert part == run
        elif not expected:
            assert part is None
        else:
            assert part is not None
            assert part.slices == expected
            assert part.partial
