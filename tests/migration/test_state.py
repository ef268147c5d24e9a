"""The states of a migration."""

import re
from pathlib import Path

import pytest

from springtide.migration.progress import Migration
from springtide.migration.state import NEXT, MigrationState, WrongTurn

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_table_in_the_docs_is_the_code() -> None:
    told: dict[str, set[str]] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 3 and (names := re.findall(r"`(\w+)`", cells[0])) and set(names) <= set(MigrationState):
            told |= {name: set(re.findall(r"`(\w+)`", cells[2])) for name in names}
    assert told == {state.value: {after.value for after in following} for state, following in NEXT.items()}


def test_only_what_has_ended_is_not_under_way() -> None:
    ended = {state for state in MigrationState if not state.under_way}
    assert ended == {MigrationState.DONE, MigrationState.CANCELLED, MigrationState.FAILED}


def test_a_wrong_turn_is_a_mistake_that_is_told() -> None:
    migration = Migration(1, "handover", "a move")
    migration.begin((), ())
    with pytest.raises(WrongTurn, match="expected a state that follows 'copying', got 'swap'"):
        migration.enter(MigrationState.SWAP)
    migration.end(MigrationState.DONE)
    with pytest.raises(WrongTurn, match="follows 'done'"):
        migration.end(MigrationState.FAILED)
    assert (migration.state, migration.to_json()["state"]) == ("done", "done")
