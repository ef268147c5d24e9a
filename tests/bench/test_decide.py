"""The experiment on deciding: every policy has its figure."""

from springtide.bench.experiments.decide import DecideBench
from springtide.policies.registry import POLICIES


def test_every_policy_is_measured() -> None:
    findings = DecideBench(workers=4, operators=2, slices=16, rounds=2).run()
    assert {f"{name}_ms" for name in POLICIES} <= findings.figures.keys()
    assert findings.figures["instances"] == 16
    assert [row[0] for row in findings.rows] == [*POLICIES, "guarded ds2"]
