"""Rings for tests."""

from hypothesis import settings
from hypothesis import strategies as st

from springtide.ids import WorkerId
from springtide.plan.ring import Ring
from springtide.plan.worker import Worker

few = settings(max_examples=60)


def ring(slices: int, **tokens: int) -> Ring:
    return Ring(slices, tuple((WorkerId(name), token) for name, token in tokens.items()), {})


def workers(*zones: str) -> list[Worker]:
    return [Worker(WorkerId(f"w{i}"), zone=zone) for i, zone in enumerate(zones)]


def lengths(of: Ring) -> list[int]:
    return [len(of.arc(worker)) for worker in of.workers]


def same_zone_neighbours(of: Ring) -> int:
    return sum(of.zones[worker] == of.zones[of.neighbour(worker)] for worker in of.workers)


@st.composite
def rings(draw: st.DrawFn, zones: str = "xyz", least: int = 1) -> Ring:
    """Any ring of up to 8 workers with ids in any order, on up to 40 slices."""
    slices = draw(st.integers(least, 40))
    tokens = draw(st.lists(st.integers(0, slices - 1), min_size=least, max_size=8, unique=True))
    ids = [WorkerId(f"w{i}") for i in range(len(tokens))]
    return Ring(slices, tuple(zip(ids, tokens, strict=True)), {w: draw(st.sampled_from(zones)) for w in ids})
