"""How an app adapts by itself: a policy, its limits, its pace."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from springtide.control.adapt.loop import Pace
from springtide.engine.spark.capacity import Capacity
from springtide.migration.errors import Refused
from springtide.migration.step import Options
from springtide.migration.strategies import DEFAULT, check_live
from springtide.policies.guards import Stability, Stable
from springtide.policies.limits import Bounds, Limits
from springtide.policies.registry import policy


@dataclass(frozen=True)
class Adapt:
    """What a user may set; Refused, with the reason, if it is not valid."""

    policy: str = "ds2"
    minimum: int = 1
    maximum: int | None = None
    """Workers; without a maximum, as many as there is room for."""
    strategy: str = DEFAULT
    dry_run: bool = False
    """Decide and record, and change nothing."""
    interval_s: float = Pace.interval_s
    window_s: float = Pace.window_s
    settle_s: float = Pace.settle_s
    target_utilisation: float = Stability.target_utilisation
    band: float = Stability.band
    stabilise_s: float = Stability.stabilise_s
    scale_down_s: float = Stability.scale_down_s
    catch_up_s: float = Stability.catch_up_s
    parallelism: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    """By step: the least and the most instances."""
    excluded: tuple[str, ...] = ()
    """Times of day without a change, in UTC, such as `22:00-06:00`."""
    policy_options: Mapping[str, float] = field(default_factory=dict)
    """The policy's own, such as `cpu_high` of `threshold` and `otd`."""
    force: bool = False
    """Bounds may be beyond what there is room for."""

    def __post_init__(self) -> None:
        for name in ("interval_s", "window_s"):
            if not getattr(self, name) > 0:
                raise Refused(f"{name}: expected more than 0 seconds, got {getattr(self, name)}")
        check_live(self.strategy, Options())
        self.stable()

    def stable(self, operators: Iterable[str] | None = None) -> Stable:
        """The policy with its guards; with the app's steps, bounds of steps that it has not are refused."""
        try:
            bounds = {step: Bounds(*some) for step, some in self.parallelism.items()}
            limits = Limits(Bounds(self.minimum, self.maximum), bounds)
            if operators is not None:
                limits.check(operators)
            stability = Stability(
                self.target_utilisation,
                self.band,
                self.stabilise_s,
                self.scale_down_s,
                self.catch_up_s,
                limits=limits,
                excluded=self.excluded,
                dry_run=self.dry_run,
            )
            return Stable(policy(self.policy, **self.policy_options), stability)
        except ValueError as error:
            raise Refused(str(error)) from error

    def within(self, capacity: Capacity) -> "Adapt":
        """The same with no more workers than there is room for; Refused if it asks for more and is not forced."""
        if self.force or capacity.workers is None:
            return self
        capacity.check(max(self.minimum, self.maximum or 1))
        return self if self.maximum is not None else replace(self, maximum=capacity.workers)

    def pace(self) -> Pace:
        return Pace(self.interval_s, self.window_s, self.settle_s)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "Adapt":
        """From what a request says, read strictly."""
        kinds = {f.name: f.default for f in fields(cls)}
        found: dict[str, Any] = {}
        for name, value in told.items():
            if name not in kinds:
                raise Refused(f"{name!r} is not a field here: the fields are {', '.join(kinds)}")
            found[name] = _read(name, value, kinds[name])
        return cls(**found)


def _read(name: str, value: Any, usual: Any) -> Any:
    if name == "parallelism":
        return _bounds(value)
    if name == "policy_options":
        return _numbers(name, value)
    if name == "excluded":
        return tuple(_all_text(name, value))
    if name == "maximum" and value is None:
        return None
    kind: type = int if name in ("minimum", "maximum") else type(usual)
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        wanted = {int: "a whole number", bool: "true or false", str: "a text", float: "a number"}[kind]
        raise Refused(f"{name!r} is {value!r}: expected {wanted}")
    return value


def _numbers(name: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict) or not all(isinstance(x, int | float) for x in value.values()):
        raise Refused(f"{name!r} is {value!r}: expected numbers by name")
    return value


def _all_text(name: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise Refused(f"{name!r} is {value!r}: expected a list of texts")
    return list(value)


def _bounds(value: Any) -> dict[str, tuple[int, int | None]]:
    example = '{"count": [1, 8]}'
    if not isinstance(value, dict):
        raise Refused(f"'parallelism' is {value!r}: expected the least and the most by step, such as {example}")
    for some in value.values():
        if not isinstance(some, list | tuple) or len(some) != 2 or not all(x is None or type(x) is int for x in some):
            raise Refused(f"'parallelism' has {some!r}: expected two whole numbers a step, such as {example}")
    return {str(step): (some[0] or 1, some[1]) for step, some in value.items()}
