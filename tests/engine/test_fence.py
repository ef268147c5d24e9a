"""Two drivers and more on one checkpoint, call by call: whoever wakes up late, every epoch counts once."""

import pytest
from fence_machine import Drivers
from hypothesis import settings

from springtide.blocks import claim as claim_module
from springtide.blocks import collect

TestDrivers = Drivers.TestCase
TestDrivers.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)


@pytest.fixture(autouse=True)
def _nobody_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_module, "RENEW_S", 3600.0)
    monkeypatch.setattr(claim_module, "alive", lambda holder: None)
    monkeypatch.setattr(collect, "SWEEP_EVERY", 3)
