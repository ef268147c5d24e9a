"""The manifests of all epochs that there were, as the driver kept them, and the accounts in them."""

from pathlib import Path

from driver_life import reports

from springtide.blocks.fsck import Fsck
from springtide.blocks.manifest import Manifest
from springtide.blocks.store import LocalStore
from springtide.cli.verbs.fsck import LOGS
from springtide.metrics.account import Account


def kept(root: Path) -> dict[int, Manifest]:
    """By epoch: its manifest. One that was committed again has the same input, the same shares, the same account."""
    found: dict[int, Manifest] = {}
    for path in sorted((root / "kept").glob("[0-9]*.json")):
        one = Manifest.decode(path.read_bytes())
        other = found.setdefault(one.epoch, one)
        assert (one.offsets, one.shedding) == (other.offsets, other.shedding), one.epoch
        assert one.account == other.account, one.epoch
    return found


def accounts(root: Path) -> dict[int, Account]:
    """By epoch: what became of its rows, as it was committed."""
    return {epoch: m.account for epoch, m in kept(root).items() if m.account is not None}


def check_told(root: Path) -> None:
    """Every epoch has one account, whoever committed it; it is reported once, and as it was committed."""
    manifests, found = kept(root), accounts(root)
    assert set(found) == set(manifests) == set(range(max(manifests) + 1))
    told = [report for report in reports(root) if report.counts]
    assert [report.epoch for report in told] == sorted(found), "each is reported once"
    for report in told:
        assert report.queries == found[report.epoch].queries
        assert report.rows_in == sum(found[report.epoch].sources.values())
        assert report.dead_letters == found[report.epoch].dead_letters
    assert Fsck(LocalStore(root / "checkpoint"), LOGS)().findings == ()
