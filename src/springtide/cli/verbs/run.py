"""`springtide run`: run an app from a file or a module."""

from functools import partial
from pathlib import Path
from string import ascii_letters, digits
from typing import Annotated, Literal

import typer
from rich.console import Console

from springtide import sinks
from springtide.app import App, default_checkpoint
from springtide.cli.shared.app_loading import Target, load_app, share_with_workers
from springtide.cli.shared.app_target import Force
from springtide.cli.shared.live_view import Beside, open_view
from springtide.cli.shared.local_broker import local_broker
from springtide.cli.shared.options import Traceback, checked
from springtide.cli.shared.outcome import Outcome
from springtide.cli.shared.quiet import without_jvm_warnings
from springtide.cli.shared.signals import end_on_signals
from springtide.cli.shared.stopping import stopped_on_failure, wait_or_stop_all
from springtide.confidential import masked_url
from springtide.dataflow.graph import Graph, Sink
from springtide.engine.durability.interval import Interval
from springtide.engine.lifecycle.running import Listener, Running
from springtide.engine.lifecycle.stop_condition import StopCondition
from springtide.engine.spark.connector_settings import for_all
from springtide.errors import BadValue
from springtide.ids import valid_name
from springtide.metrics.report import EpochReport
from springtide.policies.registry import policy

NAME = f"{ascii_letters}{digits}._-"
"""The characters of a setting's name."""
LogLevel = Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"]


def settings(pairs: list[str]) -> dict[str, str]:
    """Spark settings from KEY=VALUE."""
    found = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            name = pair[: len(pair) - len(pair.lstrip(NAME))]  # What comes after it may be a password.
            raise BadValue(f"{name!r}: expected KEY=VALUE, for example spark.driver.memory=2g")
        found[key.strip()] = value
    return found


def _until(text: str) -> str:
    StopCondition.parse(text)
    return text


def _policy(name: str) -> str:
    policy(name)
    return name


def _zones(text: str | None) -> list[str]:
    return [valid_name("the zone", zone.strip()) for zone in text.split(",")] if text else []


def _settings(pairs: list[str]) -> list[str]:
    settings(pairs)
    return pairs


def run(
    apps: Annotated[
        list[str],
        typer.Argument(
            metavar="APP...",
            help="file.py, file.py:name, or package.module:name; several share one cluster.",
            show_default=False,
        ),
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where all state lives; default .springtide/NAME. Of several apps, DIR/NAME."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", callback=checked(_until), help="available, epochs=N, rows=N or seconds=N; default never."
        ),
    ] = None,
    instances: Annotated[int | None, typer.Option(min=1, help="Instances of each keyed step.")] = None,
    trigger: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.0, help="The least time between the starts of two epochs.")
    ] = 0.0,
    master: Annotated[str | None, typer.Option(metavar="URL", help="Spark's master; default embedded.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Executors that share the keyed state; without --master, on this machine."),
    ] = None,
    replicas: Annotated[int, typer.Option(min=0, help="With --workers: copies of each slice on other workers.")] = 1,
    zones: Annotated[
        str | None, typer.Option(metavar="A,B", help="With --workers: fault zones, given to workers in turn.")
    ] = None,
    adapt: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            callback=checked(_policy),
            help="With --workers: adapt by itself; ds2, dhalion, threshold, otd or skew.",
        ),
    ] = None,
    maximum: Annotated[
        int | None, typer.Option(min=1, help="With --adapt: the most workers; default all there is room for.")
    ] = None,
    force: Force = False,
    local: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where workers keep their state at hand; default temporary.")
    ] = None,
    durable_every: Annotated[
        str,
        typer.Option(
            metavar="EPOCHS|TIME",
            callback=checked(Interval.of),
            help="How often the state is made durable: once in 8 epochs, or in '30 seconds'.",
        ),
    ] = "1",
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", callback=checked(_settings), help="A Spark setting; may be repeated."),
    ] = None,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Start a Kafka broker here; its topics stay in .springtide/kafka.")
    ] = False,
    log_level: Annotated[LogLevel, typer.Option(case_sensitive=False, help="Spark's own log, on stderr.")] = "OFF",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors, and what sinks print.")] = False,
    traceback: Traceback = False,
) -> None:
    """Run an app until it ends, or until Ctrl-C, which finishes the epoch in flight.

    Run again on the same checkpoint, the app goes on where it was.

    Several apps share one cluster: when there is more load than machine, queries of low priority give way.
    """
    loaded = [_loaded(text) for text in apps]
    names = [one.name for one in loaded]
    if len(set(names)) < len(names):
        raise BadValue(f"expected apps with names of their own, got {', '.join(names)}")
    for one in loaded if adapt is not None else ():
        one.adapt(maximum=maximum, policy=adapt or "", force=force)
    places = [_place(checkpoint, one.name, len(loaded)) for one in loaded]
    graphs = [one.graph() for one in loaded]
    terminal = Console()
    watched = terminal.is_terminal and not quiet and len(loaded) == 1
    beside = take_over_consoles(graphs[0]) if watched else None
    with open_view(names, terminal, quiet=quiet, beside=beside) as view, local_broker(kafka, *graphs):
        started: list[Running] = []
        outcomes = [Outcome() for _ in loaded]
        spark_settings = for_all(graphs, settings(conf or []))
        with end_on_signals("while the app was starting"), without_jvm_warnings(), stopped_on_failure(started):
            for one, place, outcome in zip(loaded, places, outcomes, strict=True):
                running = one.start(
                    checkpoint=place,
                    until=until,
                    instances=instances,
                    trigger_s=trigger,
                    master=master,
                    workers=workers,
                    replicas=replicas,
                    zones=_zones(zones),
                    force=force,
                    local=None if local is None else _place(local, one.name, len(loaded)),
                    durable_every=durable_every,
                    settings=spark_settings,
                    log_level=log_level,
                    on_epoch=partial(_both, view.epoch, outcome),
                    on_start=view.begins,
                )
                started.append(running)
        view.doing("running; Ctrl-C stops")
        _, stopped = wait_or_stop_all(started, lambda: view.doing("finishing the epoch in flight"))
    for name, place, outcome in zip(names, places, outcomes, strict=True) if not quiet else ():
        terminal.print(
            f"{f'{name}: ' if len(names) > 1 else ''}{'stopped' if stopped else 'done'}{outcome}; "
            f"the checkpoint is {_shown(place)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _both(view: Listener, outcome: Outcome, report: EpochReport) -> None:
    view(report)
    outcome.epoch(report)


def _loaded(text: str) -> App:
    """The app that is meant; one that can't run is refused before Spark starts."""
    target = Target.parse(text)
    loaded = load_app(target)
    loaded.graph()
    share_with_workers(target.directory)
    return loaded


def _place(checkpoint: str | None, name: str, apps: int) -> str:
    if checkpoint is None:
        return default_checkpoint(name)
    return checkpoint if apps == 1 else f"{checkpoint.rstrip('/')}/{name}"


def take_over_consoles(graph: Graph) -> Beside:
    """Let the live view show what console sinks would print in its midst."""
    consoles = {s.name: s.spec for s in graph.of(Sink) if isinstance(s.spec, sinks.Console) and s.spec.terminal}
    for console in consoles.values():
        console.terminal = None
    return lambda: [console.render(name) for name, console in consoles.items()]


def _shown(place: str) -> str:
    return masked_url(place) if "://" in place else str(Path(place))
