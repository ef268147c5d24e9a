"""A sink that takes nothing, for measurements."""

from dataclasses import dataclass

from springtide.dataflow.sink_spec import EpochOutput, SinkSpec


@dataclass(frozen=True)
class Noop(SinkSpec):
    """Computes and commits every epoch, and publishes it nowhere."""

    def publish(self, output: EpochOutput) -> None:
        """Nothing to do: the epoch's output is committed."""


def noop() -> Noop:
    """Publish nowhere; for measurements."""
    return Noop()
