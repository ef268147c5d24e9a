"""Every kind of damage to a checkpoint is found and named; what a running app does meanwhile is none."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from blocks_kit import everything, s3_store
from fsck_kit import EPOCHS, OWN, Checkpoint, examine

from springtide.blocks.block import OUTPUT, RUN, BlockRef, checksum
from springtide.blocks.durable import DurableLog, Replay
from springtide.blocks.finding import Examination, Finding
from springtide.blocks.generation import OPENED
from springtide.blocks.manifest import FORMAT, OperatorState
from springtide.blocks.store import LocalStore
from springtide.blocks.sub_store import Within
from springtide.ids import Epoch


@pytest.fixture(params=["a directory for each driver", "flat"])
def checkpoint(tmp_path: Path, request: pytest.FixtureRequest) -> Checkpoint:
    return Checkpoint(tmp_path, flat=request.param == "flat")


def only(found: Examination) -> Finding:
    """The one thing that is not as it should be."""
    (finding,) = found.findings
    assert finding.means
    assert finding.remedy
    assert found.sound == finding.harmless
    return finding


def damage(path: Path, how: Callable[[bytearray], object]) -> None:
    data = bytearray(path.read_bytes())
    how(data)
    path.write_bytes(data)


def flip(data: bytearray) -> None:
    data[len(data) // 2] ^= 0x10


def cut(data: bytearray) -> None:
    del data[-10:]


def run_of(checkpoint: Checkpoint) -> BlockRef:
    """The newest block of the state."""
    return checkpoint.head.operators["counts"].runs[-1]


class TestSound:
    def test_all_is_read_and_nothing_is_written(self, checkpoint: Checkpoint) -> None:
        before = everything(checkpoint.store)
        told: list[tuple[int, int]] = []
        found = examine(checkpoint.store, lambda done, of, size: told.append((done, of)))
        assert found.findings == ()
        assert (found.sound, found.app, found.head) == (True, "tide", EPOCHS - 1)
        counted = {part.name: part.files for part in found.parts if part.files}
        assert counted == {
            "app record": 1,
            "manifests": 2,
            "blocks": 5,
            "Spark's log": 2 * EPOCHS + 1,
            "reports": 1,
            "ledger": 1,
            "drivers": 1,
        }
        assert told == [(n, 5) for n in range(1, 6)]
        assert everything(checkpoint.store) == before

    def test_a_durable_checkpoint_and_epochs_on_workers_alone(self, checkpoint: Checkpoint) -> None:
        checkpoint.make_durable()
        checkpoint.run_on_workers()
        found = examine(checkpoint.store)
        assert found.findings == (), "state that is on workers need not be here"
        assert found.part("durable checkpoints").files == 1
        assert found.part("shed notes").files == 1

    def test_a_new_checkpoint(self, tmp_path: Path) -> None:
        found = examine(LocalStore(tmp_path / "new"))
        assert (found.sound, found.head) == (True, None)

    def test_an_object_store(self, checkpoint: Checkpoint) -> None:
        bucket = s3_store()
        for name, data in everything(checkpoint.store).items():
            bucket.put(name, data)
        assert examine(bucket).findings == ()
        bucket.delete([run_of(checkpoint).path])
        assert only(examine(bucket)).what == "missing"

    def test_what_nobody_names_is_no_damage(self, checkpoint: Checkpoint) -> None:
        orphan = checkpoint.block(Epoch(1), RUN)
        checkpoint.block(Epoch(EPOCHS), OUTPUT)  # Of an epoch in flight.
        checkpoint.path("blocks/.half.tmp").write_bytes(b"x" * 7)
        checkpoint.own.put("torn/000000001.json", b"half")
        found = examine(checkpoint.store)
        assert found.findings == ()
        orphans, left = found.part("blocks that nobody names"), found.part("temporary files")
        assert (orphans.files, orphans.size_bytes) == (1, orphan.size_bytes)
        assert (left.files, left.size_bytes, found.part("torn").files) == (1, 7, 1)

    def test_what_an_older_release_wrote(self, checkpoint: Checkpoint) -> None:
        """It gave its manifests other ids than this one would."""
        first = checkpoint.manifests[-2]
        path = checkpoint.path(f"manifests/{first.epoch:09d}.json")
        fields = json.loads(path.read_text().split("\n")[0])
        del fields["account"]
        for state in fields["operators"].values():
            state["newest_us"] = None
        body = json.dumps({**fields, "format": 4}, sort_keys=True)
        old = hashlib.sha256(body.encode()).hexdigest()
        path.write_text(f"{body}\n{old}\n")
        checkpoint.log.reset(replace(checkpoint.head, parent=old))
        assert examine(checkpoint.store).findings == ()


class TestBlocks:
    @pytest.mark.parametrize(
        ("how", "what"), [(flip, "its checksum is not the one"), (cut, r"\d+ bytes, and its manifest promises \d+")]
    )
    def test_damaged_state(self, checkpoint: Checkpoint, how: Callable[[bytearray], object], what: str) -> None:
        ref = run_of(checkpoint)
        damage(checkpoint.path(ref.path), how)
        finding = only(examine(checkpoint.store))
        assert finding.where == ref.path
        assert re.match(what, finding.what)
        assert finding.means == f"the state after epoch {EPOCHS - 1} is lost"

    def test_missing_state(self, checkpoint: Checkpoint) -> None:
        checkpoint.store.delete([run_of(checkpoint).path])
        assert only(examine(checkpoint.store)).what == "missing"

    def test_state_that_only_the_manifest_before_names(self, checkpoint: Checkpoint) -> None:
        before = checkpoint.manifests[-2].operators["counts"].runs[0]
        checkpoint.store.delete([before.path])
        assert "there is no way back" in only(examine(checkpoint.store)).means

    @pytest.mark.parametrize("rows", [3, None])
    def test_bytes_that_are_promised_and_are_no_table_of_so_many_rows(
        self, checkpoint: Checkpoint, rows: int | None
    ) -> None:
        """The writer itself was at fault: the checksum is right."""
        ref = run_of(checkpoint)
        wrong = replace(ref, rows=rows) if rows is not None else _of_bytes(checkpoint, ref, b"no table at all")
        state = OperatorState((wrong,), keys=9)
        checkpoint.log.reset(replace(checkpoint.head, operators={"counts": state}))
        what = only(examine(checkpoint.store)).what
        assert what.startswith("no Arrow file") if rows is None else what == "4 rows, and its manifest promises 3"

    def test_the_output_of_an_epoch_matters_until_it_is_done(self, checkpoint: Checkpoint) -> None:
        (output,) = checkpoint.head.outputs["counts"]
        damage(checkpoint.path(output.path), flip)
        found = examine(checkpoint.store)
        assert only(found).harmless
        checkpoint.store.delete([output.path])
        assert examine(checkpoint.store).findings == ()
        checkpoint.own.delete([f"spark/commits/{EPOCHS - 1}"])
        assert only(examine(checkpoint.store)).means == f"epoch {EPOCHS - 1} is committed, and cannot be published"

    def test_a_durable_checkpoint(self, checkpoint: Checkpoint) -> None:
        base = checkpoint.make_durable()
        for _ in range(2):
            checkpoint.run_on_workers()
        checkpoint.store.put(base.operators["counts"].runs[0].path, b"")
        means = {finding.means for finding in examine(checkpoint.store).findings}
        assert means == {f"the app cannot go back to the durable checkpoint of epoch {base.epoch}"}


class TestManifests:
    def test_a_torn_head_is_gone_back_from(self, checkpoint: Checkpoint) -> None:
        damage(checkpoint.path(f"manifests/{EPOCHS - 1:09d}.json"), cut)
        found = examine(checkpoint.store)
        finding = only(found)
        assert finding.where == checkpoint.where(f"manifests, epoch {EPOCHS - 1}")
        assert finding.what.startswith("torn: ")
        assert "goes on from the one before" in finding.means
        assert found.head == EPOCHS - 2

    def test_no_manifest_is_whole(self, checkpoint: Checkpoint) -> None:
        for epoch in checkpoint.log.epochs():
            damage(checkpoint.path(f"manifests/{epoch:09d}.json"), flip)
        found = examine(checkpoint.store)
        assert [finding.means for finding in found.findings][-1] == "the state is lost"
        assert len(found.findings) == 2

    def test_a_later_release(self, checkpoint: Checkpoint) -> None:
        body = json.dumps({"format": FORMAT + 1, "epoch": EPOCHS})
        path = checkpoint.path(f"manifests/{EPOCHS:09d}.json")
        path.write_text(f"{body}\n{hashlib.sha256(body.encode()).hexdigest()}\n")
        finding = only(examine(checkpoint.store))
        assert (finding.what, finding.remedy) == (f"format {FORMAT + 1}", "install the release that wrote it")

    def test_a_broken_chain(self, checkpoint: Checkpoint) -> None:
        checkpoint.log.reset(replace(checkpoint.manifests[-2], driver=7))
        finding = only(examine(checkpoint.store))
        assert finding.where == checkpoint.where(f"manifests, epoch {EPOCHS - 1}")
        assert finding.what == f"its parent is not the manifest of epoch {EPOCHS - 2}"

    def test_a_torn_durable_checkpoint(self, checkpoint: Checkpoint) -> None:
        base = checkpoint.make_durable()
        damage(checkpoint.path(f"durable/{base.epoch:09d}.json"), flip)
        assert only(examine(checkpoint.store)).where == checkpoint.where(f"durable, epoch {base.epoch}")


class TestRecords:
    @pytest.mark.parametrize(
        ("name", "how"),
        [
            ("app.json", cut),
            ("replay.json", cut),
            ("drivers/000000001.json", cut),
            ("ledger/000000000.jsonl", cut),
            ("reports/000000000.jsonl", cut),
            ("shed/000000003.json", cut),
            ("spark/metadata", cut),
            ("spark/offsets/1", flip),
            ("spark/commits/2", cut),
        ],
    )
    def test_a_small_file(self, checkpoint: Checkpoint, name: str, how: Callable[[bytearray], object]) -> None:
        checkpoint.make_durable()
        checkpoint.run_on_workers()
        DurableLog(checkpoint.own).note(Replay(3, {Epoch(3): "v1\n{}\n-"}))
        assert examine(checkpoint.store).findings == ()
        damage(checkpoint.path(name), how)
        assert only(examine(checkpoint.store)).where == checkpoint.where(name)

    def test_the_apps_record_is_gone(self, checkpoint: Checkpoint) -> None:
        checkpoint.store.delete(["app.json"])
        found = examine(checkpoint.store)
        assert (only(found).what, found.app) == ("missing", None)

    def test_a_torn_report_file_names_the_line(self, checkpoint: Checkpoint) -> None:
        damage(checkpoint.path("reports/000000000.jsonl"), cut)
        finding = only(examine(checkpoint.store))
        assert finding.what.startswith(f"line {EPOCHS} cannot be read")
        assert "the app's state is whole" in finding.means


class TestSparkLog:
    def test_other_offsets_than_the_heads(self, checkpoint: Checkpoint) -> None:
        checkpoint.put_spark(f"offsets/{EPOCHS - 1}", 'v1\n{}\n{"row":77}')
        finding = only(examine(checkpoint.store))
        assert finding.where == checkpoint.where(f"spark/offsets/{EPOCHS - 1}")
        assert finding.means == "rows would be lost or read twice"

    def test_the_heads_offsets_are_gone(self, checkpoint: Checkpoint) -> None:
        checkpoint.own.delete([f"spark/offsets/{EPOCHS - 1}"])
        assert only(examine(checkpoint.store)).what == f"the offsets of epoch {EPOCHS - 1} are missing"

    def test_spark_is_further_than_the_manifests(self, checkpoint: Checkpoint) -> None:
        checkpoint.put_spark(f"commits/{EPOCHS}", "v1\n{}")
        assert examine(checkpoint.store).findings == (), "the next start repeats that epoch"
        checkpoint.put_spark(f"commits/{EPOCHS + 1}", "v1\n{}")
        assert only(examine(checkpoint.store)).where == checkpoint.where("spark/commits")

    def test_epochs_that_would_have_to_be_repeated(self, checkpoint: Checkpoint) -> None:
        checkpoint.make_durable()
        for _ in range(3):
            checkpoint.run_on_workers()
        checkpoint.own.delete([f"spark/offsets/{EPOCHS}", f"spark/offsets/.{EPOCHS}.crc"])
        finding = only(examine(checkpoint.store))
        assert finding.what == f"the offsets of epochs {EPOCHS} are missing"
        assert f"goes back to epoch {EPOCHS - 1}" in finding.means


class TestBesideARunningApp:
    """The app takes steps while blocks are read."""

    def test_the_head_moves_on(self, checkpoint: Checkpoint) -> None:
        """Blocks that were named a moment ago are gone, and so are their manifests."""

        def steps(done: int, of: int, size: int) -> None:
            if len(checkpoint.manifests) < EPOCHS + 2 and done == 1:
                checkpoint.run()
                checkpoint.run()

        found = examine(checkpoint.store, steps)
        assert found.findings == ()
        assert found.head == EPOCHS + 1

    def test_another_driver_takes_over(self, checkpoint: Checkpoint) -> None:
        """It has copied what its predecessor had, and removed it there, between two calls of the reader."""
        taken = Within(checkpoint.store, "generations/000000003")

        class TakenOver(LocalStore):
            def list(self, prefix: str) -> list[str]:
                if prefix == checkpoint.where("manifests") and not taken.list(""):
                    for name, data in everything(checkpoint.store).items():
                        own = name.removeprefix(f"{OWN}/")
                        if own.startswith(("manifests/", "spark/")):
                            taken.put(own, data)
                    taken.put(OPENED, b"{}")
                    for directory in ("manifests", "spark"):
                        checkpoint.own.remove(directory)
                return super().list(prefix)

        found = examine(TakenOver(checkpoint.store.root))
        assert (found.findings, found.head) == ((), EPOCHS - 1)
        assert found.part("Spark's log").files == 2 * EPOCHS + 1

    def test_damage_is_found_all_the_same(self, checkpoint: Checkpoint) -> None:
        def steps(done: int, of: int, size: int) -> None:
            if len(checkpoint.manifests) == EPOCHS:
                checkpoint.run()
                checkpoint.store.put(run_of(checkpoint).path, b"")

        finding = only(examine(checkpoint.store, steps))
        assert finding.where == run_of(checkpoint).path


def _of_bytes(checkpoint: Checkpoint, ref: BlockRef, data: bytes) -> BlockRef:
    checkpoint.store.put(ref.path, data)
    return replace(ref, size_bytes=len(data), crc32=checksum(data))
