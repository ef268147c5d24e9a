"""What `springtide fsck` prints, and how it ends."""

import json
from pathlib import Path

import pytest
from fsck_kit import Checkpoint
from typer.testing import CliRunner, Result

from springtide.cli.main import cli

PLACE = "./checkpoint"


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    monkeypatch.chdir(tmp_path)
    made = Checkpoint(tmp_path)
    made.store.delete(["ledger/000000000.jsonl"])  # Not written by the ledger itself.
    return made


def fsck(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["fsck", *arguments], env={"COLUMNS": "80", "TERM": "dumb"})
    assert "…" not in result.stdout
    assert all(len(line) <= 80 for line in result.stdout.splitlines() if not line.startswith("{")), result.stdout
    return result


def flat(result: Result) -> str:
    return " ".join(result.output.split())


def test_a_sound_checkpoint(checkpoint: Checkpoint) -> None:
    result = fsck(PLACE)
    assert result.exit_code == 0, result.output
    assert "Sound: tide can go on after epoch 2." in result.output
    assert "blocks" in result.output


def test_damage_is_told_with_what_it_means_and_what_to_do(checkpoint: Checkpoint) -> None:
    run = checkpoint.head.operators["counts"].runs[-1]
    checkpoint.store.put(run.path, b"")
    result = fsck(PLACE)
    assert result.exit_code == 1
    assert "0 bytes, and its manifest promises" in flat(result)
    assert "the state after epoch 2 is lost -> restore the checkpoint from a backup" in flat(result)
    assert "Damaged: 1 finding above." in result.output


def test_as_json(checkpoint: Checkpoint) -> None:
    checkpoint.own.delete(["spark/metadata"])
    result = fsck(PLACE, "--json")
    assert result.exit_code == 1
    told = json.loads(result.output)
    assert (told["app"], told["head"], told["sound"]) == ("tide", 2, False)
    assert told["findings"][0]["where"] == checkpoint.where("spark/metadata")
    assert {part["name"]: part["files"] for part in told["parts"]}["manifests"] == 2


def test_a_checkpoint_whose_record_is_damaged_is_found_all_the_same(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint.store.put("app.json", b"{")
    assert "app.json: unreadable" in flat(fsck(PLACE))
    home = checkpoint.store.root.parent / "home" / ".springtide"
    home.mkdir(parents=True)
    (home / "tide").symlink_to(checkpoint.store.root)
    monkeypatch.chdir(home.parent)
    assert "app.json: unreadable" in flat(fsck("tide"))


def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = fsck("tide")
    assert (result.exit_code, "there is no checkpoint of 'tide'" in flat(result)) == (1, True)
