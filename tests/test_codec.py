"""What is written as JSON is read back as it was, and what is damaged is refused with the field's name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from springtide import codec
from springtide.blocks.slice_set import NO_SLICES, SliceSet
from springtide.errors import BadValue
from springtide.ids import Epoch


@dataclass(frozen=True)
class Leaf:
    name: str
    slices: SliceSet = NO_SLICES
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tree:
    leaves: tuple[Leaf, ...] = ()
    by_epoch: Mapping[Epoch, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(value < 0 for value in self.by_epoch.values()):
            raise BadValue("a value is negative")


TREE = Tree((Leaf("a", SliceSet.of(range(4)), (1, 2)), Leaf("b")), {Epoch(7): 0.5})


def test_values_read_back_as_they_were() -> None:
    assert codec.loads(Tree, codec.dumps(TREE)) == TREE
    assert codec.convert(Tree, codec.plain(TREE)) == TREE


def test_people_see_ranges() -> None:
    assert codec.dumps(Leaf("a", SliceSet.of([0, 1, 2, 5]))) == '{"name": "a", "slices": "0-2,5", "span": null}'


def test_numbers_that_are_not_finite_survive() -> None:
    tree = Tree(by_epoch={Epoch(1): float("inf")})
    assert codec.loads(Tree, codec.dumps(tree)) == tree


def test_what_another_release_wrote_is_read_as_far_as_it_is_known() -> None:
    assert codec.loads(Leaf, '{"name": "a", "colour": "green"}') == Leaf("a")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", "Expected `object`, got `array`"),
        ('{"leaves": [{"name": "a"}, {"name": 3}]}', r"Expected `str`, got `int` - at `\$.leaves\[1\].name`"),
        ('{"leaves": [{}]}', "missing required field `name`"),
        ('{"leaves": [{"name": "a", "slices": "x"}]}', "expected slices as ranges"),
        ('{"leaves": [{"name": "a", "slices": 3}]}', "Expected the text of a SliceSet, got 3"),
        ('{"by_epoch": {"1": -1}}', "a value is negative"),
    ],
)
def test_what_is_damaged_is_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(codec.Unreadable, match=says):
        codec.loads(Tree, text)


def test_a_value_without_a_form_in_json_is_no_text() -> None:
    with pytest.raises(TypeError, match="frozenset can't be written"):
        codec.dumps({"slices": frozenset({1})})
