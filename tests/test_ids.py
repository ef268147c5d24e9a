"""Names that are safe as ids and as path segments."""

import pickle

import pytest

from springtide.ids import BadName, valid_name


@pytest.mark.parametrize("name", ["a", "word-counts", "A_1", "-", "0" * 80])
def test_good_names(name: str) -> None:
    assert valid_name("the step", name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a" * 81,
        "a b",
        "a/b",
        "..",
        "../x",
        "a.b",
        "ä",
        "a\n",
        "\n",
        "a\x00",
        "%2e%2e",
        "/etc",
        "a:b",
        "٣",
        None,
        7,
        b"a",
        ["a"],
    ],
)
def test_bad_names_are_refused_with_an_example_of_a_good_one(name: object) -> None:
    with pytest.raises(BadName, match=r"the step .* is not a valid name: use .*'word-counts'") as caught:
        valid_name("the step", name)
    assert (caught.value.what, caught.value.name) == ("the step", name)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), vars(copy)) == (str(caught.value), vars(caught.value))
