"""The generator: the same rows however they are cut, of the promised distribution."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from springtide.connectors.generator.rates import constant, sine, step
from springtide.connectors.generator.rows import GeneratorSpec, split

unhurried = settings(deadline=None)
START_S = 1_700_000_000.25

specs = st.builds(
    GeneratorSpec,
    rate=st.sampled_from([constant(1000), step([(0, 100), (3, 400)]), sine(500, 500, 7)]),
    seed=st.integers(-(2**70), 2**70),
    keys=st.integers(1, 5000),
    skew=st.sampled_from([0.0, 0.7, 1.5]),
    words_per_row=st.integers(0, 4),
    disorder_s=st.sampled_from([0.0, 2.5]),
    start_s=st.one_of(st.none(), st.floats(0, 2e9)),
    max_rows_per_epoch=st.one_of(st.none(), st.integers(1, 10**6)),
    partitions=st.integers(1, 9),
)


@unhurried
@given(specs, st.integers(0, 10**9), st.lists(st.integers(0, 500), min_size=1, max_size=5))
def test_any_split_gives_the_same_rows(spec: GeneratorSpec, start: int, sizes: list[int]) -> None:
    cuts = np.cumsum([start, *sizes]).tolist()
    pieces = [spec.rows(a, b, START_S) for a, b in pairwise(cuts)]
    whole = pa.Table.from_batches([spec.rows(start, cuts[-1], START_S)])
    assert pa.Table.from_batches(pieces).equals(whole)


@unhurried
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 64))
def test_spans_adjoin_and_are_even(start: int, rows: int, parts: int) -> None:
    spans = list(split(start, start + rows, parts))
    assert [row for span in spans for row in span] == sorted(row for span in spans for row in span)
    assert sum(end - first for first, end in spans) == rows
    assert all(end > first for first, end in spans)
    assert len(spans) == min(parts, rows)
    if spans:
        assert spans[0][0] == start
        sizes = [end - first for first, end in spans]
        assert max(sizes) - min(sizes) <= 1


@unhurried
@given(specs)
def test_json_gives_the_same_spec_back(spec: GeneratorSpec) -> None:
    assert GeneratorSpec.from_json(spec.to_json()) == spec


def test_columns_and_their_ranges() -> None:
    spec = GeneratorSpec(constant(1000), keys=50, disorder_s=2.0)
    rows = spec.rows(0, 20_000, START_S)
    assert rows.schema == spec.schema()
    assert spec.ddl() == "id BIGINT, key BIGINT, value DOUBLE, event_time TIMESTAMP, due_time TIMESTAMP"
    assert rows["id"].to_pylist() == list(range(20_000))
    assert set(rows["key"].to_pylist()) == set(range(50))
    value = rows["value"].to_numpy()
    assert value.min() >= 0
    assert value.max() < 1
    assert abs(value.mean() - 0.5) < 0.01
    due_us, event_us = (rows[name].cast(pa.int64()).to_numpy() for name in ("due_time", "event_time"))
    assert due_us.tolist() == [int(START_S * 1e6) + 1000 * (i + 1) for i in range(20_000)]
    delay_us = due_us - event_us
    assert delay_us.min() >= 0
    assert delay_us.max() <= 2_000_000
    assert abs(delay_us.mean() - 1_000_000) < 20_000


def test_without_disorder_events_happen_when_they_are_due() -> None:
    rows = GeneratorSpec(constant(10)).rows(0, 100, START_S)
    assert rows["event_time"].equals(rows["due_time"])


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.2])
def test_keys_follow_the_exact_zipf_distribution(skew: float) -> None:
    keys, rows = 200, 400_000
    drawn = GeneratorSpec(constant(1), seed=7, keys=keys, skew=skew).rows(0, rows, 0.0)["key"].to_numpy()
    weight = np.arange(1, keys + 1) ** -skew
    expected = rows * weight / weight.sum()
    chi_square = ((np.bincount(drawn, minlength=keys) - expected) ** 2 / expected).sum()
    # With 199 degrees of freedom, one seed in a million is above 300.
    assert chi_square < 300


def test_columns_seeds_and_neighbouring_rows_are_independent() -> None:
    one, other = (GeneratorSpec(constant(1), seed=s, keys=10**6).rows(0, 100_000, 0.0) for s in (1, 2))
    key, value = one["key"].to_numpy(), one["value"].to_numpy()
    pairs = [(key, value), (value[1:], value[:-1]), (value, other["value"].to_numpy())]
    assert all(abs(np.corrcoef(a, b)[0, 1]) < 0.02 for a, b in pairs)


def test_text_is_words_of_a_seeded_vocabulary_by_frequency() -> None:
    spec = GeneratorSpec(constant(1), keys=6000, skew=1.0, words_per_row=5)
    rows = spec.rows(0, 20_000, 0.0)
    assert spec.ddl().startswith("id BIGINT, text STRING, value")
    lines = [line.split(" ") for line in rows["text"].to_pylist()]
    assert {len(line) for line in lines} == {5}
    words = {word for line in lines for word in line}
    assert all(word.isascii() and word.islower() and word.isalpha() for word in words)
    keyed = GeneratorSpec(constant(1), keys=6000, skew=1.0).rows(0, 100_000, 0.0)["key"].to_pylist()
    meaning = dict(zip(keyed, [word for line in lines for word in line], strict=True))
    assert len(set(meaning.values())) == len(meaning), "two ranks share a word"
    other = GeneratorSpec(constant(1), seed=1, keys=6000, skew=1.0, words_per_row=5)
    assert other.rows(0, 10, 0.0)["text"] != rows["text"].slice(0, 10)


def test_the_limit_ends_the_stream() -> None:
    spec = GeneratorSpec(constant(100), limit=250)
    assert [spec.due_rows(s) for s in (1.0, 2.5, 1e9)] == [100, 250, 250]
    assert spec.rows(0, 250, 0.0).num_rows == 250
    with pytest.raises(ValueError, match=r"not within 0\.\.250"):
        spec.rows(0, 251, 0.0)


def test_a_row_that_is_never_due_is_not_made() -> None:
    with pytest.raises(ValueError, match="never due"):
        GeneratorSpec(step([(0, 10), (1, 0)])).rows(0, 11, 0.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("keys", 0),
        ("keys", 1.5),
        ("limit", 0),
        ("partitions", 0),
        ("max_rows_per_epoch", -1),
        ("words_per_row", -1),
        ("skew", float("nan")),
        ("disorder_s", -0.1),
        ("start_s", float("inf")),
        ("seed", "x"),
    ],
)
def test_a_bad_spec_is_refused_where_it_is_built(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"a generator needs a.* {field}.*got"):
        GeneratorSpec(constant(1), **{field: value})


@pytest.mark.parametrize("text", ["{}", "[]", '{"rate": {"kind": "constant", "rows_per_s": 1}, "color": "red"}'])
def test_what_is_not_a_spec_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a generator spec"):
        GeneratorSpec.from_json(text)
