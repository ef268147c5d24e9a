"""How far an app may grow and shrink."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from springtide.errors import BadValue
from springtide.policies.decision import Scale
from springtide.policies.words import plural


@dataclass(frozen=True)
class Bounds:
    """At least and at most; None is without end."""

    minimum: int = 1
    maximum: int | None = None

    def check(self, what: str) -> None:
        """ValueError unless something fits in between."""
        if self.minimum < 1:
            raise BadValue(f"{what}: expected a minimum of 1 or more, got {self.minimum}")
        if self.maximum is not None and self.maximum < self.minimum:
            raise BadValue(f"{what}: expected a maximum of {self.minimum} or more, got {self.maximum}")

    def clamp(self, number: int) -> int:
        """The nearest number that is allowed."""
        number = max(number, self.minimum)
        return number if self.maximum is None else min(number, self.maximum)

    def __str__(self) -> str:
        return f"at least {self.minimum}" if self.maximum is None else f"{self.minimum} to {self.maximum}"


@dataclass(frozen=True)
class Limits:
    """Bounds for the number of workers, and by operator for its parallelism."""

    workers: Bounds = field(default_factory=Bounds)
    parallelism: Mapping[str, Bounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.workers.check("workers")
        for operator, bounds in self.parallelism.items():
            bounds.check(f"parallelism of step {operator!r}")

    def check(self, operators: Iterable[str]) -> None:
        """ValueError if there are bounds for an operator that the app does not have."""
        known = sorted(operators)
        strangers = sorted(set(self.parallelism) - set(known))
        if strangers:
            raise BadValue(f"parallelism: expected steps of {known}, got {strangers}")

    def clamp(self, workers: int, slots: float) -> int:
        """The nearest number of workers that is allowed.

        An operator with a minimum of instances needs as many slots.
        """
        most = max((bounds.minimum for bounds in self.parallelism.values()), default=1)
        return self.workers.clamp(max(workers, math.ceil(most / slots)))

    def apply(self, scale: Scale, slots: float) -> tuple[Scale, str]:
        """The decision within the limits, and what they changed; nothing is said if they changed nothing.

        Slots that an operator may not use are not provided for it.
        """
        bounded = {name: self._bounds(name).clamp(p) for name, p in scale.parallelism.items()}
        spare = sum(max(0, p - bounded[name]) for name, p in scale.parallelism.items())
        workers = self.clamp(max(1, math.ceil(scale.workers - spare / slots)), slots)
        notes = [
            f"{name} is bounded to {self._bounds(name)} instances, not {p}"
            for name, p in scale.parallelism.items()
            if bounded[name] != p
        ]
        if workers != scale.workers:
            notes.append(f"bounded to {plural(workers, 'worker')}, not {scale.workers}")
        return replace(scale, workers=workers, parallelism=bounded), "; ".join(notes)

    def _bounds(self, operator: str) -> Bounds:
        return self.parallelism.get(operator, Bounds())
