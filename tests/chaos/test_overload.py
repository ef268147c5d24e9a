"""Five times the load that the app can carry, for minutes, with shedding and without: every row is accounted for."""

import json
import math
from pathlib import Path

import pytest
from driver_life import reports
from kept_accounts import accounts, check_told, kept
from overload_app import QUERIES, SLOTS
from overload_kit import Life, counted, source_s

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1500)]
FACTOR = 5.0
ROW_S = 0.0025
MOST = SLOTS / (len(QUERIES) * ROW_S)
"""Rows a second that the app could carry if it did nothing but take its time over them: no machine makes it more."""
CALM_S, OVERLOAD_S = 15.0, 125.0
CALM = 30.0
OVER_S = CALM_S + OVERLOAD_S
RATES = [(0.0, CALM), (CALM_S, FACTOR * MOST), (OVER_S, CALM)]
EPOCH_ROWS, DRAINING_ROWS = 3000, 30_000
DEVIATIONS = 5.0
"""It is by chance which rows are shed: an epoch may be five standard deviations below what was decided."""


def test_with_shedding(tmp_path: Path) -> None:
    """Fault 31. Queries give way, and have everything again afterwards."""
    life = Life(tmp_path, RATES, True, ROW_S, EPOCH_ROWS)
    overloaded_and_killed(life)
    with life:
        life.until("the end of the load", lambda: life.source_s() > OVER_S)
        life.until("what waited to drain", lambda: life.drained(5 * CALM))
        life.until("all rows again", life.accurate)
        life.stop()
    check_load(tmp_path)
    found = accounts(tmp_path)
    for epoch, account in found.items():
        for query in account.queries:
            assert query.offered == query.processed + query.shed + query.dead_letters, (epoch, query)
            assert query.offered == sum(account.sources.values()), (epoch, query)
            minimum, n = QUERIES[query.query][0], query.offered
            chance = DEVIATIONS * math.sqrt(n * minimum * (1 - minimum))
            assert query.processed >= minimum * n - chance, (epoch, query)
    for name, (minimum, _) in QUERIES.items():
        mine = [query for account in found.values() for query in account.queries if query.query == name]
        assert sum(query.shed for query in mine) > 0
        assert sum(q.processed for q in mine) >= minimum * sum(q.offered for q in mine)
        assert sum(q.processed for q in mine) == counted(tmp_path, name), "what is told is what was done"
    shed = {name: sum(q.shed for a in found.values() for q in a.queries if q.query == name) for name in QUERIES}
    assert shed["high"] <= shed["low"]
    check_account(tmp_path)


def test_without_shedding(tmp_path: Path) -> None:
    """Fault 31. Everything waits at the source, until there is a machine that is up to it."""
    life = Life(tmp_path, RATES, False, ROW_S, EPOCH_ROWS)
    overloaded_and_killed(life)
    with life:
        life.until("the end of the load", lambda: life.source_s() > OVER_S)
        assert not life.drained((FACTOR - 2) * MOST * OVERLOAD_S), "most of it waits"
        life.stop()
    with Life(tmp_path, RATES, False, 0.0, DRAINING_ROWS) as life:
        life.until("what waited to drain", lambda: life.drained(5 * CALM))
        life.stop()
    check_load(tmp_path)
    for name in QUERIES:
        assert counted(tmp_path, name) == sum(sum(a.sources.values()) for a in accounts(tmp_path).values())
    assert not any(step.shed_rows for account in accounts(tmp_path).values() for step in account.steps)
    check_account(tmp_path)


def overloaded_and_killed(life: Life) -> None:
    """The first life: it is killed in the midst of the overload."""
    with life:
        life.until("the midst of the overload", lambda: life.source_s() > CALM_S + OVERLOAD_S / 2)
        life.kill()


def check_load(root: Path) -> None:
    """The load was as many times the capacity as was meant: what the same run got through when it shed nothing."""
    full = [
        report
        for report in reports(root)
        if report.rows_in == EPOCH_ROWS and CALM_S < source_s(root, report) < OVER_S and not report.replayed
    ]
    whole = [report for report in full if not any(query.shed for query in report.queries)]
    assert len(whole) >= 2, "enough to tell"
    capacity = sum(report.rows_in for report in whole) / sum(report.elapsed_s or 0.0 for report in whole)
    load = FACTOR * MOST
    assert load >= FACTOR * capacity, f"{load:.0f} rows a second came, and {capacity:.0f} could be worked on"


def check_account(root: Path) -> None:
    """Every epoch has one account, whoever committed it; together they have all rows that the source gave, once."""
    check_told(root)
    manifests, found = kept(root), accounts(root)
    assert len({manifest.driver for manifest in manifests.values()}) > 1, "a later driver went on"
    for epoch, account in found.items():
        for step in account.steps:
            offered = sum(account.sources.values())
            assert step.rows_in + step.shed_rows == offered, (epoch, step)
    taken: int = json.loads(manifests[max(manifests)].offsets[0])["row"]
    assert sum(sum(account.sources.values()) for account in found.values()) == taken
