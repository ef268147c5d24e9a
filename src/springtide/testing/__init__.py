"""Test an app's steps without Spark: hand a step rows, epoch by epoch, and look at what it gives.

>>> from springtide import App, agg, sinks, sources
>>> from springtide.testing import StepHarness
>>> app = App("words")
>>> words = app.source("words", sources.generator(1, words_per_row=1))
>>> query = words.key_by("text").aggregate("count", n=agg.count()).sink("out", sinks.memory())
>>> harness = StepHarness(app, "count", {"text": str})
>>> harness.epoch([{"text": "ebb"}, {"text": "flow"}, {"text": "ebb"}])
[{'text': 'ebb', 'n': 2}, {'text': 'flow', 'n': 1}]
>>> harness.epoch([{"text": "ebb"}])
[{'text': 'ebb', 'n': 3}]
"""

from springtide.testing.clock import ManualClock
from springtide.testing.database import Server, postgres
from springtide.testing.harness import StepHarness, stable_hash

__all__ = ["ManualClock", "Server", "StepHarness", "postgres", "stable_hash"]
