"""The roster is used by one thread at a time, and nobody waits while holding it."""

import threading
from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from office_kit import STEP, A, B, C, D, Office, until

from springtide.blocks.block import BlockRef
from springtide.blocks.manifest import Manifest, OperatorState
from springtide.blocks.slice_set import SliceSet
from springtide.engine.ownership.shared_roster import NotHeld
from springtide.engine.ownership.standby import Standbys
from springtide.engine.pool.copy_job import CopyJob
from springtide.engine.pool.replicator import Replicator
from springtide.engine.worker.copy import Copied, Errand
from springtide.engine.worker.open_state import Parts
from springtide.ids import Epoch, WorkerId
from springtide.migration.step import Options
from springtide.state.layout import Layout

SLOW = ("ask", "wait_for", "warm_up", "dismiss", "give_back", "check", "replace")
"""What a cluster may take its time for."""


def watched(office: Office) -> list[str]:
    """Let the cluster note what it was asked for while somebody held the roster."""
    held: list[str] = []

    def free() -> None:
        with office.shared.held():
            pass

    def watch(name: str) -> None:
        asked = getattr(office.cluster, name)

        def slowly(*arguments: object, **options: object) -> object:
            looker = threading.Thread(target=free, daemon=True)
            looker.start()
            looker.join(1.0)
            if looker.is_alive():
                held.append(name)
            return asked(*arguments, **options)

        setattr(office.cluster, name, slowly)

    for name in SLOW:
        watch(name)
    return held


def test_whoever_uses_it_holds_it() -> None:
    office = Office([A, B])
    with pytest.raises(NotHeld, match="expected a thread that holds the roster"):
        _ = office.migrator.roster
    with office.shared.held() as roster:
        assert office.migrator.roster is roster
        with office.shared.held():
            assert office.migrator.roster is roster
        assert office.migrator.roster is roster, "held until the outermost block ends"
        others: list[bool] = []
        thread = threading.Thread(target=lambda: others.append(_refused(office)))
        thread.start()
        thread.join()
        assert others == [True], "another thread does not hold it"
    assert _refused(office)
    assert office.shared.plan is office.roster.plan


def _refused(office: Office) -> bool:
    try:
        return office.migrator.roster is None
    except NotHeld:
        return True


def test_nobody_waits_for_workers_while_holding_it() -> None:
    office = Office([A, B], [C, D])
    held = watched(office)
    office.epoch()
    grown = office.migrator.scale(3, "handover", Options())
    until(lambda: grown.begun)
    office.epochs(lambda: not grown.under_way)
    office.epoch()
    office.migrator.scale(2, "handover", Options())
    office.epochs(lambda: bool(office.cluster.dismissed))
    assert held == []


def test_nobody_waits_for_the_cluster_while_calling_a_growth_off() -> None:
    office = Office([A, B])
    office.cluster.slow = True
    held = watched(office)
    office.epoch()
    migration = office.migrator.scale(3, "progressive", Options())
    until(lambda: 3 in office.cluster.asked)
    assert office.migrator.cancel() is migration
    until(lambda: all(thread.name != "springtide-growing" for thread in threading.enumerate()))
    assert 2 in office.cluster.asked
    assert (migration.state, office.roster.wanted, held) == ("cancelled", 2, [])


def test_a_growth_ends_with_the_app_whose_workers_have_not_come() -> None:
    office = Office([A, B])
    office.cluster.slow = True
    office.epoch()
    migration = office.migrator.scale(3, "progressive", Options())
    until(lambda: 3 in office.cluster.asked)
    office.migrator.stop()
    assert all(thread.name != "springtide-growing" for thread in threading.enumerate())
    assert (migration.state, migration.message, office.cluster.asked[-1]) == ("cancelled", "the app has ended", 2)


def test_when_all_are_lost_another_is_waited_for_while_nobody_holds_it() -> None:
    office = Office([A, B])
    office.epoch()
    held = watched(office)
    office.cluster.there = [C]
    office.epoch()
    assert set(office.owners()) == {C}
    assert held == []


class SwappedMeanwhile:
    """Copies, while all workers are swapped."""

    def __init__(self, office: Office) -> None:
        self.office = office

    def run(self, errands: Sequence[Errand], parts: Mapping[WorkerId, Parts]) -> Copied:
        with self.office.shared.held() as roster:
            roster.standbys = Standbys()
        parts = [BlockRef(f"part-{e.run.name}", STEP, Epoch(0), 1, 8, 0, worker=e.target) for e in errands]
        return Copied(tuple((e.run.name, part) for e, part in zip(errands, parts, strict=True)), ())


def test_copies_for_workers_that_were_swapped_meanwhile_are_let_go() -> None:
    office = Office([A, B])
    run = BlockRef("run", STEP, Epoch(0), 1, 8, 0, slices=SliceSet.parse("0-15"), worker=A)
    office.roster.head = Manifest("app", Epoch(0), "", office.roster.plan.version, 1, {STEP: OperatorState((run,))})
    copying = cast(CopyJob, SwappedMeanwhile(office))
    replicator = Replicator(copying, office.shared, {STEP: cast(Layout, None)}, 1.0, threading.Event())
    assert not replicator.once()
    assert "part-run" in office.roster.standbys.held(), "else nobody would ever remove it"
