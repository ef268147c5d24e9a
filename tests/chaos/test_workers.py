"""Workers that die or can't write: the driver says so, commits nothing of it, and the next run goes on."""

import pytest
from chaos_kit import WORKER_POINTS, Site, head
from chaos_oracle import expected, published

from springtide.dataflow.errors import StepFailed

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow]
EPOCHS = 5
DIED = "Python worker exited unexpectedly"
KEYED = {"count", "windows", "rows"}
SINKS = {"raw", "counts", "finals"}

FAULTS = (
    # Fault 20: the durable store is full.
    ("block.put=oserror@1", "no space left on device", KEYED, 0),
    # Fault 21: a write that seems to fail and has landed; without a second attempt the epoch is replayed.
    ("block.put=late-oserror@1", "timed out", KEYED, 0),
    ("update.begun=kill@1", DIED, KEYED, 0),
    ("block.put=kill@2", DIED, KEYED, 1),
    ("block.written=kill@2", DIED, KEYED, 1),
    ("publish.part=kill@2", DIED, SINKS, 2),
    # Once more while the epoch is only published again.
    ("publish.part=kill@2", DIED, SINKS, 2),
)


def test_every_failpoint_of_a_worker_in_turn(site: Site) -> None:
    assert {failpoint.partition("=")[0] for failpoint, *_ in FAULTS} == WORKER_POINTS - {"publish.sent"}, "Kafka's own"
    oracle = expected(EPOCHS)
    for failpoint, says, steps, committed in FAULTS:
        with pytest.raises(StepFailed) as failed:
            site.run_with_workers(EPOCHS, failpoint)
        assert says in str(failed.value), failpoint
        assert failed.value.step in steps, failpoint
        point, _, action = failpoint.partition("=")
        assert action.startswith("oserror") or (site.markers / point).exists(), failpoint
        manifest = head(site.checkpoint)
        assert manifest is not None
        assert manifest.epoch == committed, failpoint
        visible = published(site.root)
        assert not visible.beyond(oracle), failpoint
        assert max(visible.epochs()) <= committed, failpoint
    site.run(EPOCHS)
    site.check(EPOCHS)
