"""Level arcs: where tokens go so that arcs differ by at most one slice and as many slices as possible stay."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

EXACT = 50_000_000
"""Steps that the search for the fewest moves may take; rings that need more are content with nearly the fewest."""


def level(tokens: Sequence[int], slices: int) -> list[int]:
    """The tokens of level arcs, one for each of the sorted `tokens`; level ones stay as they are."""
    longer = slices % len(tokens)
    arcs = np.diff([*tokens, tokens[0] + slices])
    if arcs.max() - arcs.min() <= 1:
        return list(tokens)
    return fewest_moves(tokens, slices) if len(tokens) * (longer + 1) * slices <= EXACT else few_moves(tokens, slices)


def few_moves(tokens: Sequence[int], slices: int) -> list[int]:
    """Arcs one slice longer are spread evenly around the ring, and the ring is turned to where most slices stay.

    When the ring turns by one, an arc gains a slice at one end and gives one up at the other. Whether these
    are slices that its worker has had depends on where it is, in two ranges of turns for each worker.
    """
    n = len(tokens)
    begins = np.asarray(tokens)
    lengths = np.diff([*tokens, tokens[0] + slices])
    starts = np.arange(n + 1) * slices // n
    gains = _covered((begins - starts[1:]) % slices, lengths, slices)
    gives_up = _covered((begins - starts[:-1]) % slices, lengths, slices)
    kept = np.concatenate(([0], np.cumsum(gains - gives_up)[:-1]))
    return [int(token) for token in (starts[:-1] + kept.argmax()) % slices]


def _covered(begins: NDArray[np.int64], lengths: NDArray[np.int64], slices: int) -> NDArray[np.int64]:
    """By position on the circle: how many of the ranges cover it."""
    change = np.zeros(2 * slices + 1, np.int64)
    np.add.at(change, begins, 1)
    np.add.at(change, begins + lengths, -1)
    covered = np.cumsum(change)
    return np.asarray(covered[:slices] + covered[slices : 2 * slices])


def fewest_moves(tokens: Sequence[int], slices: int) -> list[int]:
    """Dynamic programming for all positions of the first token at once.

    `kept[j, p]` is the most slices that the arcs so far can keep if the first one starts at `p` and `j` of
    them are one slice longer than the others.
    """
    share, longer = divmod(slices, len(tokens))
    start, used = np.arange(slices), np.arange(longer + 1)[:, np.newaxis]
    impossible = -2 * slices
    kept = np.where(used == 0, 0, np.full((longer + 1, slices), impossible))
    took_longer: list[NDArray[np.bool_]] = []
    for i, token in enumerate(tokens):
        length = (tokens[(i + 1) % len(tokens)] - token) % slices or slices
        mine = np.tile((start - token) % slices < length, 2)
        mine_before = np.concatenate(([0], np.cumsum(mine)))
        at = (start + i * share + used) % slices
        plain = kept + mine_before[at + share] - mine_before[at]
        extended = np.full_like(kept, impossible)
        extended[1:] = (kept + mine_before[at + share + 1] - mine_before[at])[:-1]
        took_longer.append(extended > plain)
        kept = np.maximum(plain, extended)
    first, j = int(kept[longer].argmax()), longer
    found = []
    for i in reversed(range(len(tokens))):
        j -= int(took_longer[i][j, first])
        found.append((first + i * share + j) % slices)
    return found[::-1]
