"""The policy that a scenario names, with its options and what keeps it steady."""

from collections.abc import Mapping
from typing import Any

from springtide.policies.guards import Stability, Stable
from springtide.policies.limits import Bounds, Limits
from springtide.policies.policy import Policy
from springtide.policies.registry import POLICIES
from springtide.simulator.scenario.fields import BadScenario, Fields
from springtide.simulator.scenario.scenario import ControlModel

NONE = "none"
"""The name of no policy: nothing is decided."""


def choose(name: str, control: ControlModel) -> Policy | None:
    """The policy of this name; None if nothing is to be decided."""
    if name == NONE:
        return None
    if name not in POLICIES:
        raise BadScenario("control.policies", f"policies of {', '.join([*sorted(POLICIES), NONE])}", name)
    made: Policy = _made(f"control.{name}", POLICIES[name], control.settings.get(name, {}))
    if control.stability is None:
        return made
    fields = Fields(control.stability, "control.stability")
    limits = Limits(
        Bounds(fields.whole("least_workers", 1), fields.whole("most_workers") if fields.has("most_workers") else None)
    )
    return Stable(made, _made("control.stability", Stability, {**fields.rest(), "limits": limits}))


def _made(path: str, make: Any, options: Mapping[str, Any]) -> Any:
    known = getattr(make, "__dataclass_fields__", {})
    for key, value in options.items():
        if key not in known:
            raise BadScenario(f"{path}.{key}", f"only the keys {', '.join(sorted(known)) or '(none)'}", value)
    try:
        return make(**options)
    except (TypeError, ValueError) as wrong:
        raise BadScenario(path, "options that the policy takes", str(wrong)) from None
