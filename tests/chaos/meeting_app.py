"""An app on several workers in which streams meet, sessions end and timers ring; its oracle is `meeting_oracle`."""

import sys
from datetime import datetime, timedelta
from pathlib import Path

import cluster_app
from chaos_app import DISORDER_S
from join_app import GAP_S, HIGH_S, LOW_S, lefts, rights, spec
from join_oracle import Row

from springtide import App, agg, sinks, sources
from springtide.state.timers import Timer

WAIT_S, AGAIN_S, TTL_S = 0.5, 1.0, 0.8
MANY = 3
"""Rows of a key up to which it is told of once only."""
CANCELS = 13
"""Rows whose number it divides cancel the timer of their key."""


def watched(key: Row, rows: list[Row], state: Row | None, timer: Timer) -> tuple[Row, list[Row]]:
    """Counts rows; a timer that is not set is set to a while after the newest one."""
    if any(row["x"] % CANCELS == 0 for row in rows):
        timer.cancel()
    elif timer.at is None:
        timer.set(max(row["at"] for row in rows) + timedelta(seconds=WAIT_S))
    return {"n": (state["n"] if state else 0) + len(rows)}, []


def rung(key: Row, state: Row, timer: Timer) -> tuple[Row | None, list[Row]]:
    """Tells of the rows; a key with many of them is told of once more, though no other comes."""
    assert timer.now is not None
    told = [{"k": key["k"], "n": state["n"], "at": timer.now}]
    if state["n"] <= MANY:
        return None, told
    timer.set(timer.now + timedelta(seconds=AGAIN_S))
    return {"n": 0}, told


def build(root: Path, epochs: int, keys: int) -> App:
    """A full join, sessions, and a reducer with timers that forgets. Its names are those that the kit looks for."""
    app = App("chaos", slices=16)
    left = app.source("left", sources.Generator(spec("left", epochs, keys))).transform("lefts", lefts).key_by("k")
    right = app.source("right", sources.Generator(spec("right", epochs, keys))).transform("rights", rights).key_by("id")
    late = f"{DISORDER_S} seconds"
    span = (f"{LOW_S} seconds", f"{HIGH_S} seconds")
    joined = left.join("count", right, how="full", time=("at", "at"), within=span, late=late)
    joined.sink("joined", sinks.parquet(str(root / "joined")))
    visits = left.session("at", f"{GAP_S} seconds", late=late).aggregate("windows", n=agg.count(), total=agg.sum("x"))
    visits.sink("over", sinks.parquet(str(root / "over")), mode="final")
    rings = left.reduce(
        "timers",
        watched,
        state={"n": int},
        output={"k": int, "n": int, "at": datetime},
        on_timer=rung,
        time="at",
        late=late,
        ttl=f"{TTL_S} seconds",
    )
    rings.sink("rings", sinks.parquet(str(root / "rings")))
    return app


if __name__ == "__main__":
    sys.exit(cluster_app.main(build))
