"""The strategies by name."""

from collections.abc import Mapping

from springtide.migration.handover import handover
from springtide.migration.lazy import lazy
from springtide.migration.partial_pause import partial_pause
from springtide.migration.progressive import progressive
from springtide.migration.step import Strategy

DEFAULT = "progressive"
STRATEGIES: Mapping[str, Strategy] = {
    "handover": handover,
    "progressive": progressive,
    "partial_pause": partial_pause,
    "lazy": lazy,
}
