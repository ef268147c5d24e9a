"""The strategies by name: live ones move slices while the app runs, the others stop it to swap all workers."""

from collections.abc import Mapping

from springtide.migration.capture import CAPTURE
from springtide.migration.drain import DRAIN
from springtide.migration.errors import Refused
from springtide.migration.handover import HANDOVER
from springtide.migration.lazy import LAZY
from springtide.migration.partial_pause import PARTIAL_PAUSE
from springtide.migration.progressive import PROGRESSIVE
from springtide.migration.restart import RESTART
from springtide.migration.step import Options
from springtide.migration.strategy import LiveStrategy, StoppingStrategy
from springtide.plugins import Registry

DEFAULT = PROGRESSIVE.name
OUR_LIVE = (HANDOVER, PROGRESSIVE, PARTIAL_PAUSE, LAZY)
OUR_STOPPING = (RESTART, DRAIN, CAPTURE)
LIVE: Mapping[str, LiveStrategy] = Registry(
    "springtide.strategies", {strategy.name: strategy for strategy in OUR_LIVE}, LiveStrategy.offered
)
"""Ours, and those of other packages."""
STOPPING: Mapping[str, StoppingStrategy] = {strategy.name: strategy for strategy in OUR_STOPPING}


def names() -> list[str]:
    """Those of all strategies, without importing what other packages offer."""
    return [*LIVE, *STOPPING]


def check(strategy: str, options: Options) -> None:
    """Refused if there is no such strategy, or if it can't do what it is told."""
    if strategy not in names():
        raise Refused(f"expected a strategy of {sorted(names())}, got {strategy!r}")
    if options.slices_an_epoch is not None and options.slices_an_epoch < 1:
        raise Refused(f"expected 1 slice an epoch or more, got {options.slices_an_epoch}")
    told = options.hottest_first or options.slices_an_epoch is not None
    if told and not (strategy in LIVE and LIVE[strategy].paced):
        raise Refused(
            f"hottest_first and slices_an_epoch are for {PROGRESSIVE.name!r}, got {strategy!r}: leave them out"
        )


def check_live(strategy: str, options: Options) -> None:
    """Refused too if the strategy stops the app: it swaps all workers, and cannot move a few slices."""
    check(strategy, options)
    if strategy in STOPPING:
        raise Refused(f"expected a strategy that moves slices, of {sorted(LIVE)}, got {strategy!r}: it is for scaling")
