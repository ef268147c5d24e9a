"""The strategies by name."""

from collections.abc import Mapping

from springtide.migration.errors import Refused
from springtide.migration.handover import handover
from springtide.migration.lazy import lazy
from springtide.migration.partial_pause import partial_pause
from springtide.migration.progressive import progressive
from springtide.migration.step import Options, Strategy

DEFAULT = "progressive"
STRATEGIES: Mapping[str, Strategy] = {
    "handover": handover,
    "progressive": progressive,
    "partial_pause": partial_pause,
    "lazy": lazy,
}


def check(strategy: str, options: Options) -> None:
    """Refused if there is no such strategy, or if it can't do what it is told."""
    if strategy not in STRATEGIES:
        raise Refused(f"expected a strategy of {sorted(STRATEGIES)}, got {strategy!r}")
    if options.slices_an_epoch is not None and options.slices_an_epoch < 1:
        raise Refused(f"expected 1 slice an epoch or more, got {options.slices_an_epoch}")
    if strategy != "progressive" and (options.hottest_first or options.slices_an_epoch is not None):
        raise Refused(f"hottest_first and slices_an_epoch are for 'progressive', got {strategy!r}: leave them out")
