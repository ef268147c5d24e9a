"""What shedding costs: a row that is kept in an app that may shed, and a row that is shed.

Both are slopes: the time of an epoch with many drives less that of one with few, over the difference in drives. What an
epoch takes whatever its drives is in neither. Each is the median of several rounds; contestants take turns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from springtide.bench.experiments.shed.staged import FEW, Burst

MANY = 2
"""Times the drives of the burst that told the capacity."""
SHED = 20
"""Times as many drives as in a kept burst: they cost so little that fewer would be lost in the noise."""
NONE_KEPT = {"speeds": 0.0, "zones": 0.0}
Send = Callable[[int], Burst]


def slope(few: Burst, many: Burst) -> float:
    """Seconds a row."""
    return (many.seconds - few.seconds) / (many.rows - few.rows)


@dataclass(frozen=True)
class Costs:
    """Seconds a row, in turn."""

    plain_s: Sequence[float]
    """In an app that may not shed."""
    kept_s: Sequence[float]
    """In one that may, while nothing is shed."""

    @property
    def kept_row(self) -> float:
        """What a row costs in an app that may shed and does not, over what it costs in one that may not."""
        return median(self.kept_s) / median(self.plain_s)


def costs_of_kept(without: Send, with_: Send, rows: int, rounds: int) -> Costs:
    """Bursts to both apps in turn, of the same number of rows. No controller is at work: nothing is shed."""
    found: list[tuple[float, float]] = [
        (slope(without(FEW), without(MANY * rows)), slope(with_(FEW), with_(MANY * rows))) for _ in range(rounds)
    ]
    return Costs([plain for plain, _ in found], [kept for _, kept in found])


def cost_of_shed(send: Send, shed: Callable[[Mapping[str, float]], None], rows: int, rounds: int) -> float:
    """What a row that is shed for all queries costs over one that is kept, in the same app.

    In turn: everything is kept in a burst, and nothing in one of many more rows.
    """
    kept, spared = [], []
    for _ in range(rounds):
        shed({})
        kept.append(slope(send(FEW), send(MANY * rows)))
        shed(NONE_KEPT)
        spared.append(slope(send(FEW), send(SHED * MANY * rows)))
    shed({})
    return median(spared) / median(kept)
