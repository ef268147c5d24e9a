"""Counts in experiments, and whether they are right."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced


@dataclass
class LastCounts(SinkSpec):
    """A sink that keeps the last count of every key it has seen."""

    key: str = "k"
    count: str = "n"
    by_key: dict[int, int] = field(default_factory=dict)

    def publish(self, output: EpochOutput) -> None:
        rows = output.table()
        self.by_key.update(zip(rows[self.key].to_pylist(), rows[self.count].to_pylist(), strict=True))

    @property
    def total(self) -> int:
        """Rows counted, over all keys."""
        return sum(self.by_key.values())

    def against(self, expected: Mapping[int, int]) -> tuple[int, int]:
        """Rows lost, and rows counted twice."""
        off = [self.by_key.get(key, 0) - expected.get(key, 0) for key in self.by_key.keys() | expected.keys()]
        return sum(-d for d in off if d < 0), sum(d for d in off if d > 0)


def counted(groups: Groups) -> Reduced:
    """A count by `key` as a reducer, for experiments that add work of their own to it."""
    ends = np.append(groups.starts[1:], groups.rows.num_rows)
    before = np.where(groups.known, groups.state["n"].fill_null(0).to_numpy(), 0)
    n = pa.array(before + (ends - groups.starts), pa.int64())
    return Reduced(pa.table({"n": n}), pa.table({"key": groups.keys["key"], "n": n}))
