"""The strategies by name: live ones move slices while the app runs, the others stop it to swap all workers."""

from collections.abc import Mapping

from springtide.migration.capture import CAPTURE
from springtide.migration.drain import DRAIN
from springtide.migration.errors import Refused
from springtide.migration.handover import handover
from springtide.migration.lazy import lazy
from springtide.migration.partial_pause import partial_pause
from springtide.migration.phase import Phase
from springtide.migration.progressive import progressive
from springtide.migration.restart import RESTART
from springtide.migration.step import Options, Strategy
from springtide.plugins import Registry

DEFAULT = "progressive"
LIVE: Mapping[str, Strategy] = Registry(
    "springtide.strategies",
    {"handover": handover, "progressive": progressive, "partial_pause": partial_pause, "lazy": lazy},
)
"""Functions from moves to steps."""
STOPPING: Mapping[str, tuple[Phase, ...]] = {
    "restart": RESTART,
    "drain": DRAIN,
    "capture": CAPTURE,
}


def check(strategy: str, options: Options) -> None:
    """Refused if there is no such strategy, or if it can't do what it is told."""
    if strategy not in LIVE and strategy not in STOPPING:
        raise Refused(f"expected a strategy of {sorted([*LIVE, *STOPPING])}, got {strategy!r}")
    if options.slices_an_epoch is not None and options.slices_an_epoch < 1:
        raise Refused(f"expected 1 slice an epoch or more, got {options.slices_an_epoch}")
    if strategy != "progressive" and (options.hottest_first or options.slices_an_epoch is not None):
        raise Refused(f"hottest_first and slices_an_epoch are for 'progressive', got {strategy!r}: leave them out")


def check_live(strategy: str, options: Options) -> None:
    """Refused too if the strategy stops the app: it swaps all workers, and cannot move a few slices."""
    check(strategy, options)
    if strategy in STOPPING:
        raise Refused(f"expected a strategy that moves slices, of {sorted(LIVE)}, got {strategy!r}: it is for scaling")
