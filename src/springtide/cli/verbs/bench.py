"""`springtide bench`: experiments with their peers beside them."""

import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal, Protocol

import typer
from rich.console import Console

from springtide.bench.experiments.autoscale import AutoscaleBench
from springtide.bench.experiments.decide import DecideBench
from springtide.bench.experiments.deploy import DeployBench
from springtide.bench.experiments.estimate.bench import EstimateBench
from springtide.bench.experiments.join.bench import JoinBench
from springtide.bench.experiments.join.throughput import Throughput
from springtide.bench.experiments.latency import LatencyBench
from springtide.bench.experiments.migrate.bench import STRATEGIES as MIGRATE
from springtide.bench.experiments.migrate.bench import MigrateBench, MigrateSuite
from springtide.bench.experiments.migrate.journey import dataflow_of
from springtide.bench.experiments.migrate_compare import CompareBench
from springtide.bench.experiments.nexmark.bench import NexmarkBench
from springtide.bench.experiments.priorities.bench import PrioritiesBench
from springtide.bench.experiments.qod.bench import QodBench
from springtide.bench.experiments.recover import RecoverBench
from springtide.bench.experiments.replication import ReplicationBench
from springtide.bench.experiments.rescale import RescaleBench
from springtide.bench.experiments.rescale_growth import RescaleGrowthBench
from springtide.bench.experiments.shed.adapt import ShedAdaptBench
from springtide.bench.experiments.soak.bench import SoakBench
from springtide.bench.experiments.state import StateBench
from springtide.bench.experiments.state_growth import GrowthBench
from springtide.bench.harness.findings import Findings
from springtide.cli.shared.quiet import without_jvm_warnings
from springtide.workloads.nexmark.queries.catalogue import CATALOGUE

app = typer.Typer(help="Measure Springtide beside its peers, in one run, on this machine.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print the figures as one JSON object on the last line.")]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller experiment, in under two minutes.")]
Out = Annotated[Path, typer.Option("--out", help="Where the picture goes.", file_okay=False)]
HERE = Path("bench-results")
WIDTH = 120
"""Of tables that go to a file or another command."""


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


@app.command()
def join(
    held: Annotated[int, typer.Option(help="Rows of each stream that wait in the state.", min=1)] = 1_000_000,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """Interval join of two streams against Spark's own, HDFS-backed and RocksDB.

    Then, with both sides waiting in the state:

    - growth: a 10 000-row epoch with 10 M rows in the state over one with 100 k

    - rescale_worst_epoch_over_median: while 2 workers become 3
    """
    _publish(JoinBench.quick(held) if quick else JoinBench(Throughput(held=held)), out, as_json)


@app.command()
def nexmark(
    events: Annotated[int, typer.Option(help="People, auctions and bids in all.", min=1000)] = 2_000_000,
    queries: Annotated[str, typer.Option(help="Names such as q0,q3, or all of them.")] = "all",
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """The 23 queries over an online auction, beside the SQL of Spark's streaming and of Flink.

    Rows a second are those of the tables that a query reads. First each
    runs a part of the events, and its rows are compared with DuckDB's;
    then they take turns over all of them, warm. Start-up does not count.
    """
    if find_spec("duckdb") is None:
        raise typer.BadParameter("this benchmark compares rows with DuckDB's: pip install 'springtide[bench]'")
    named = () if queries == "all" else tuple(name.strip() for name in queries.split(","))
    if unknown := sorted(set(named) - set(CATALOGUE)):
        raise typer.BadParameter(f"expected queries of {', '.join(CATALOGUE)}, or all, got {', '.join(unknown)}")
    bench = NexmarkBench.quick(events, named) if quick else NexmarkBench(events, named or tuple(CATALOGUE))
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


@app.command()
def rescale(
    keys: Annotated[int, typer.Option(help="Stored keys.", min=1)] = 1_000_000,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """From 2 to 4 workers and back under load, against Spark's own stop, repartition and start."""
    bench = RescaleBench(min(keys, 20_000), 1, 2, rows=2_000, calm=6) if quick else RescaleBench(keys)
    _publish(bench, out, as_json)


@app.command("rescale-growth")
def rescale_growth(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The worst epoch of a rescaling with 100 thousand and with 2 million stored keys."""
    quicker = RescaleGrowthBench(few=5_000, many=50_000, workers=1, more=2, rows=2_000, calm=4)
    _publish(quicker if quick else RescaleGrowthBench(), out, as_json)


@app.command()
def recover(
    workers: Annotated[int, typer.Option(help="Workers at the start.", min=2)] = 4,
    kill: Annotated[int, typer.Option(help="How many are lost at once, every other one on the ring.", min=1)] = 1,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """Workers lost to SIGKILL under load: time to the next result, retries, durable reads."""
    if kill >= workers:
        raise typer.BadParameter(f"expected fewer kills than workers ({workers}), got {kill}")
    bench = RecoverBench(min(workers, 3), 1, 20_000, 2_000, calm=6) if quick else RecoverBench(workers, kill)
    _publish(bench, out, as_json)


@app.command()
def replication(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The throughput with one and two replicas of each slice against that with none."""
    quicker = ReplicationBench(20_000, 20_000, rounds=1, epochs=6, practice=False, stored=50_000, changed=1_000)
    bench = quicker if quick else ReplicationBench()
    _publish(bench, out, as_json)


@app.command()
def migrate(
    dag: Annotated[str, typer.Option(help="linear, diamond, star, grid, traffic, or linear-N with N tasks.")] = "grid",
    direction: Annotated[Literal["in", "out"], typer.Option(help="To fewer workers, or to more.")] = "in",
    strategy: Annotated[str, typer.Option(help=f"One of {', '.join(MIGRATE)}, or all of them.")] = "all",
    suite: Annotated[bool, typer.Option("--suite", help="All dataflows in both directions, in under 40 min.")] = False,
    window: Annotated[float, typer.Option(help="Seconds for which output must be steady.", min=1.0)] = 60.0,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """Dataflows moved to other workers: stopping strategies (restart, drain, capture) beside live ones."""
    chosen = MIGRATE if strategy == "all" else tuple(strategy.split(","))
    if unknown := sorted(set(chosen) - set(MIGRATE)):
        raise typer.BadParameter(f"expected strategies of {', '.join(MIGRATE)}, or all, got {', '.join(unknown)}")
    try:
        dataflow_of(dag)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if quick:
        bench: Bench = MigrateBench("linear-2", direction, ("capture", "handover"), window_s=3.0, calm_epochs=2)
    else:
        bench = MigrateSuite(strategies=chosen) if suite else MigrateBench(dag, direction, chosen, window)
    _publish(bench, out, as_json)


@app.command("migrate-compare")
def migrate_compare(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The live strategies and a stop and start on the same move: latency before, during and after."""
    _publish(CompareBench(1_000, 5_000, calm=3, hold_s=3.0) if quick else CompareBench(), out, as_json)


@app.command()
def decide(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The time that a policy takes to decide about 2 000 instances on 100 workers."""
    _publish(DecideBench(rounds=5) if quick else DecideBench(), out, as_json)


@app.command()
def qod(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """The controller that sheds: the time of a cycle with up to 2 000 tasks, and how well it knows what comes in."""
    if find_spec("confluent_kafka") is None:
        raise typer.BadParameter("this benchmark writes to Kafka: pip install 'springtide[kafka]'")
    from springtide.bench.experiments.qod.injection import known_rates  # Here, as Kafka's client is an extra.

    beside = (partial(known_rates, quick),)
    _publish(QodBench(rounds=8, beside=beside) if quick else QodBench(beside=beside), out, as_json)


@app.command()
def priorities(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """Two apps with more load than two workers hold: who gives way, and whether anybody falls below its minimum."""
    _publish(PrioritiesBench.quick() if quick else PrioritiesBench(), out, as_json)


@app.command()
def autoscale(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """A load that steps up fourfold and back, followed by DS2 and by Dhalion."""
    quicker = AutoscaleBench(phases_s=(6.0, 20.0, 8.0), factor=2.5, apart=False)
    _publish(quicker if quick else AutoscaleBench(), out, as_json)


@app.command()
def deploy(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """Slices in the wrong places, moved one at a time by OTD: traffic between workers, and an even load."""
    _publish(DeployBench(seconds=15.0) if quick else DeployBench(), out, as_json)


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(help="In all, a third of them for the peer.", min=0.5)] = 20.0,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """Fifteen keyed steps and windows for a while: memory, descriptors, threads, files, and the time of an epoch."""
    _publish(SoakBench(min(minutes, 0.7) if quick else minutes), out, as_json)


@app.command()
def estimate(as_json: Json = False, quick: Quick = False, out: Out = HERE) -> None:
    """How often the 95 % intervals of estimates hold the truth, by kept share and skew, against the plain way."""
    _publish(EstimateBench(keys=16_000) if quick else EstimateBench(), out, as_json)


@app.command()
def shed(
    factor: Annotated[float, typer.Option(help="The peak, in times of the capacity.", min=0.6)] = 1.6,
    step: Annotated[bool, typer.Option("--step", help="The rate rises in one second, not by and by.")] = False,
    adapt: Annotated[bool, typer.Option("--adapt", help="With --step: more workers come to help.")] = False,
    runs: Annotated[int, typer.Option(help="Overloads in a row; the peer has the last one.", min=1)] = 1,
    as_json: Json = False,
    quick: Quick = False,
    out: Out = HERE,
) -> None:
    """More taxi drives from Kafka than the machine can work on, with load shedding and without.

    Both apps are warmed, each in its own Spark; their capacity is measured
    in turn. Then the rate rises to FACTOR times it, stays, and falls.

    - lag_cycles: the most that waited, in cycles of the controller
    - recovered_cycles: from the end of the peak until less than one waits
    - cost_of_kept_row: with nothing shed, over an app that may not shed
    - cost_of_shed_row: over one that is kept
    - growth_over_foretold, where the minima do not fit: of the lag
    - machine_speed: of the machine itself, meanwhile

    With --step, in place of the costs:

    - acted_s: from the step to the first epoch that sheds
    - acted_bar_s: one cycle, and the epoch that was under way

    With --step --adapt, on one worker that may ask for two more:

    - workers_asked_s, served_s: to the decision, to their first epoch
    - ended_cycles: from then to the last epoch that sheds

    The table shows the bar of each figure; with --runs, a column for each
    run, and the picture is that of the worst. It is saved as
    bench-shed[-FACTOR][-step].png or bench-shed-adapt.png.
    """
    if adapt and not step:
        raise typer.BadParameter("--adapt is about a step of the load: add --step")
    if adapt and runs > 1:
        raise typer.BadParameter("--adapt starts its apps anew for every step: run the command again instead of --runs")
    if adapt:
        _publish(ShedAdaptBench.quick(factor) if quick else ShedAdaptBench(factor), out, as_json)
        return
    if find_spec("confluent_kafka") is None:
        raise typer.BadParameter("this benchmark writes to Kafka: pip install 'springtide[kafka]'")
    from springtide.bench.experiments.shed.bench import ShedBench  # Here, as Kafka's client is an extra.

    bench = ShedBench.quick(factor, step, runs) if quick else ShedBench(factor, step, runs=runs)
    _publish(bench, out, as_json)


def _publish(bench: Bench, out: Path, as_json: bool) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    with without_jvm_warnings(), console.status(f"{type(bench).__name__}: the contestants take turns") as status:
        findings = bench.run(status.update) if isinstance(bench, NexmarkBench) else bench.run()
    findings.publish(out, as_json=as_json, console=console)
