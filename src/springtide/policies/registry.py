"""The policies by name."""

from collections.abc import Callable, Mapping

from springtide.policies.balancing.otd import Otd
from springtide.policies.policy import Policy
from springtide.policies.scaling.dhalion import Dhalion
from springtide.policies.scaling.ds2 import Ds2
from springtide.policies.scaling.threshold import Threshold

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "ds2": Ds2,
    "dhalion": Dhalion,
    "threshold": Threshold,
    "otd": Otd,
}


def policy(name: str) -> Policy:
    """The policy of this name, with its default options."""
    if name not in POLICIES:
        raise ValueError(f"expected a policy of {sorted(POLICIES)}, got {name!r}")
    return POLICIES[name]()
