"""The policies by name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from springtide.errors import BadValue
from springtide.plugins import Registry
from springtide.policies.balancing.otd import Otd
from springtide.policies.balancing.skew import Skew
from springtide.policies.policy import Policy
from springtide.policies.scaling.dhalion import Dhalion
from springtide.policies.scaling.ds2 import Ds2
from springtide.policies.scaling.threshold import Threshold

POLICIES: Mapping[str, Any] = Registry(
    "springtide.policies",
    {"ds2": Ds2, "dhalion": Dhalion, "threshold": Threshold, "otd": Otd, "skew": Skew},
)
"""Frozen dataclasses whose fields are the options of a policy."""


def policy(name: str, **options: float) -> Policy:
    """The policy of this name, with these options and its usual ones."""
    if name not in POLICIES:
        raise BadValue(f"expected a policy of {sorted(POLICIES)}, got {name!r}")
    kind = POLICIES[name]
    known = [field.name for field in fields(kind)]
    strange = sorted(set(options) - set(known))
    if strange:
        raise BadValue(f"policy {name!r}: expected options of {known}, got {strange}")
    made: Policy = kind(**options)
    return made
