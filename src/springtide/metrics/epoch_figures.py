"""The figures of an epoch: what each means, where it is counted, and the one function that works it out.

Terminal, `status`, the control API and `/metrics` all read them here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from springtide.metrics.report import EpochReport

ROWS, EPOCHS, SECONDS, BYTES, SHARE, TIMES = "rows", "epochs", "s", "bytes", "0 to 1", "times"
"""Units."""

READING = (
    "tasks, as they read the partitions that sources give, each partition once, before the epoch is committed; for "
    "generators from the offsets"
)
TASKS = "tasks, told in their commit records"
DRIVER = "the driver's clock"
SOURCE = "the driver, from the source's offsets and its clock or its broker; not known for files"
MANIFEST = "the driver, from the epoch's manifest"
SHEDDING = "tasks that read the sources; only in apps with a query that may shed"


@dataclass(frozen=True)
class Figure:
    """One figure of an epoch; None if it is not known."""

    name: str
    unit: str
    meaning: str
    counted: str
    """Where, and by whom."""
    of: Callable[[EpochReport], float | None]


def rows_per_s(report: EpochReport) -> float:
    """Rows for each second since the epoch before it in the same run; for the first, of its own time."""
    return _per_s(report.rows_in, elapsed_s(report))


def elapsed_s(report: EpochReport) -> float:
    """The time that an epoch's rows are set against; its own where an old report does not tell."""
    return report.phases.total_s if report.elapsed_s is None else report.elapsed_s


def rate(reports: Sequence[EpochReport]) -> float | None:
    """Rows a second of several epochs together; None if there are none."""
    return _per_s(sum(r.rows_in for r in reports), sum(map(elapsed_s, reports))) if reports else None


def _per_s(rows: int, seconds: float) -> float:
    return rows / seconds if seconds > 0 else 0.0


def _accuracy(report: EpochReport) -> float | None:
    return min((query.accuracy for query in report.queries), default=None)


FIGURES: tuple[Figure, ...] = (
    Figure("rows_in", ROWS, "Rows that the sources gave, malformed ones too.", READING, lambda r: r.rows_in),
    Figure(
        "rows_out",
        ROWS,
        "Rows that steps gave to sinks; a step with several sinks counts once.",
        TASKS,
        lambda r: r.rows_out,
    ),
    Figure("rows_per_s", "rows/s", "rows_in for each second of elapsed_s.", DRIVER, rows_per_s),
    Figure(
        "elapsed_s",
        SECONDS,
        "From the end of the epoch before it in the same run, or from its own start if it is the first, to its end.",
        DRIVER,
        elapsed_s,
    ),
    Figure("epoch_s", SECONDS, "From an epoch's start to its end: all phases.", DRIVER, lambda r: r.phases.total_s),
    Figure("plan_s", SECONDS, "The phase in which the epoch's plan is read.", DRIVER, lambda r: r.phases.plan_s),
    Figure(
        "compute_s",
        SECONDS,
        "The phase in which steps are computed, with all attempts.",
        DRIVER,
        lambda r: r.phases.compute_s,
    ),
    Figure("commit_s", SECONDS, "The phase in which the manifest is written.", DRIVER, lambda r: r.phases.commit_s),
    Figure("publish_s", SECONDS, "The phase in which sinks get their rows.", DRIVER, lambda r: r.phases.publish_s),
    Figure(
        "collect_s",
        SECONDS,
        "The phase in which blocks that nobody needs are removed.",
        DRIVER,
        lambda r: r.phases.collect_s,
    ),
    Figure(
        "latency_s",
        SECONDS,
        "From the time the epoch's newest row was due to its publication.",
        SOURCE,
        lambda r: r.latency_s,
    ),
    Figure("lag_rows", ROWS, "Rows due and not yet taken from the sources.", SOURCE, lambda r: r.lag_rows),
    Figure(
        "late_rows",
        ROWS,
        "Rows that came after their window had closed.",
        TASKS,
        lambda r: sum(operator.late_rows for operator in r.operators),
    ),
    Figure(
        "ahead_rows",
        ROWS,
        "Rows that were kept out because their event time is too far ahead of the clock.",
        TASKS,
        lambda r: sum(operator.ahead_rows for operator in r.operators),
    ),
    Figure(
        "dead_letters",
        ROWS,
        "Rows that do not fit their schema, or their step's types.",
        "tasks, as they read rows and prepare them for their step",
        lambda r: r.dead_letters,
    ),
    Figure(
        "shed_rows",
        ROWS,
        "Rows that queries were spared; a row that two queries are spared counts twice.",
        SHEDDING,
        lambda r: sum(query.shed for query in r.queries),
    ),
    Figure(
        "accuracy",
        SHARE,
        "The share of rows that the least accurate query got.",
        SHEDDING,
        _accuracy,
    ),
    Figure(
        "retries",
        TIMES,
        "How often the epoch was planned and run anew, because a worker was lost or lacked its state.",
        "the driver",
        lambda r: r.retries,
    ),
    Figure(
        "state_rows",
        ROWS,
        "Keys that all steps together remember.",
        MANIFEST,
        lambda r: sum(operator.state_rows for operator in r.operators),
    ),
    Figure(
        "state_bytes",
        BYTES,
        "What the state of all steps takes in the store.",
        MANIFEST,
        lambda r: sum(operator.state_bytes for operator in r.operators),
    ),
)
"""All of them."""

FIGURE = {figure.name: figure for figure in FIGURES}


def figure(name: str, report: EpochReport) -> float | None:
    """One figure of an epoch."""
    return FIGURE[name].of(report)


def figures(report: EpochReport) -> dict[str, float | None]:
    """All figures of an epoch, by name."""
    return {each.name: each.of(report) for each in FIGURES}
