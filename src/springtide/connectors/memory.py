"""Rows kept in this process, as a sink."""

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from springtide.dataflow.sink_spec import EpochOutput, SinkSpec


@dataclass
class Memory(SinkSpec):
    """Rows kept in this process by epoch, for tests and notebooks."""

    epochs: dict[int, pa.Table] = field(default_factory=dict)

    def publish(self, output: EpochOutput) -> None:
        self.epochs[output.epoch] = output.table()

    def rows(self) -> list[dict[str, Any]]:
        """All rows, by epoch."""
        return [row for epoch in sorted(self.epochs) for row in self.epochs[epoch].to_pylist()]


def memory() -> Memory:
    """Keep the rows in this process; read them with `.rows()`.

    >>> memory().rows()
    []
    """
    return Memory()
