"""What a pool is started for."""

from collections.abc import Mapping
from dataclasses import dataclass

from springtide.engine.worker.task_context import Storage
from springtide.ids import PlanVersion
from springtide.state.layout import Layout


@dataclass(frozen=True)
class KeyedState:
    """The state that workers are to own: an app's keyed steps, each cut into slices."""

    app: str
    layouts: Mapping[str, Layout]
    """By keyed step."""
    slices: int
    storage: Storage
    version: PlanVersion
    """Of the first plan, which comes after that of the last epoch."""
