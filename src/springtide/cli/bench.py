"""`springtide bench`: experiments with their peers beside them."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Protocol

import typer
from rich.console import Console

from springtide.bench.figures import Findings
from springtide.bench.growth import GrowthBench
from springtide.bench.latency import LatencyBench
from springtide.bench.state import StateBench
from springtide.cli.quiet import without_jvm_warnings

app = typer.Typer(help="Measure Springtide beside its peers, in one run, on this machine.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object on the last line.")]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller experiment, in under two minutes.")]
Out = Annotated[Path, typer.Option("--out", help="Where the picture goes.", file_okay=False)]
HERE = Path("bench-results")


class Bench(Protocol):
    """An experiment."""

    def run(self) -> Findings:
        """Let the contestants run, and compare them."""


@app.command()
def state(
    rows: Annotated[int, typer.Option(help="Rows an epoch.", min=1)] = 1_000_000,
    keys: Annotated[int, typer.Option(help="Different keys.", min=1)] = 1_000_000,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """Keyed count in steady state against Spark's stateful query, HDFS-backed and RocksDB."""
    bench = StateBench(min(rows, 200_000), min(keys, 200_000), rounds=1, epochs=5) if quick else StateBench(rows, keys)
    _publish(bench, out, as_json)


@app.command("state-growth")
def state_growth(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The cost of an epoch with 100 thousand and with 10 million stored keys."""
    bench = GrowthBench(few=20_000, many=500_000, rounds=1, epochs=6) if quick else GrowthBench()
    _publish(bench, out, as_json)


@app.command()
def latency(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The time of an epoch of 1 000 rows against Spark's own stateful query."""
    bench = LatencyBench(rounds=1, epochs=15, warm_epochs=15) if quick else LatencyBench()
    _publish(bench, out, as_json)


def _publish(bench: Bench, out: Path, as_json: bool) -> None:
    if find_spec("matplotlib") is None:
        raise typer.BadParameter("benchmarks draw pictures: pip install 'springtide[bench]'")
    console = Console()
    with without_jvm_warnings(), console.status(f"{type(bench).__name__}: the contestants take turns"):
        findings = bench.run()
    findings.publish(out, as_json=as_json, console=console)
