"""All checks, in the order in which a person wants to read them: first what every app needs."""

from collections.abc import Callable, Sequence

from springtide.doctor import extras, machine, runtimes, workers
from springtide.doctor.finding import Finding, State
from springtide.logs import room_logger

Check = Callable[[], Finding | list[Finding]]
log = room_logger(__name__)

EXTRAS: Sequence[Check] = (
    lambda: extras.kafka_jars("connector", "Kafka sources"),
    lambda: extras.kafka_jars("broker", "springtide run --kafka, and tests"),
    lambda: extras.package("Kafka client", "confluent-kafka", "kafka", "Kafka sources and sinks", "confluent_kafka"),
    lambda: extras.package("PostgreSQL client", "psycopg", "postgres", "PostgreSQL sinks"),
    extras.postgres_server,
    lambda: extras.package("S3 driver", "s3fs", "s3", "checkpoints and Parquet sinks in S3"),
    lambda: extras.package("matplotlib", "matplotlib", "bench", "pictures of benchmarks and simulations"),
)


def checks(version: str) -> Sequence[Check]:
    """For a Springtide of this version."""
    return (
        lambda: runtimes.springtide(version),
        runtimes.python,
        runtimes.java,
        runtimes.spark,
        workers.made_sessions,
        machine.loopback,
        machine.host_name,
        machine.memory,
        machine.processor,
        machine.disks,
        workers.own_sessions,
        *EXTRAS,
    )


def examine(some: Sequence[Check]) -> list[Finding]:
    """What all checks found. One that fails itself is a finding too, and keeps none of the others from being made."""
    found: list[Finding] = []
    for check in some:
        try:
            one = check()
        except Exception as error:
            log.exception("a check failed")
            one = Finding("a check", State.WARNING, f"failed: {type(error).__name__}: {error}", "report it, please")
        found += one if isinstance(one, list) else [one]
    return found
