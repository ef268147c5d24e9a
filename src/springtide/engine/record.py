"""The commit record: what one instance tells the driver of an epoch. Plain JSON."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql.types import StringType, StructField, StructType

from springtide.blocks.block import BlockRef
from springtide.metrics.report import InstanceReport
from springtide.state.logic import BEGINNING_US

RECORD = StructType([StructField("record", StringType())])


@dataclass(frozen=True)
class MapStats:
    """What was seen where rows were read."""

    rows_in: int = 0
    late_rows: int = 0
    malformed_rows: int = 0
    newest_us: int = BEGINNING_US
    busy_s: float = 0.0

    def __add__(self, other: "MapStats") -> "MapStats":
        return MapStats(
            self.rows_in + other.rows_in,
            self.late_rows + other.late_rows,
            self.malformed_rows + other.malformed_rows,
            max(self.newest_us, other.newest_us),
            self.busy_s + other.busy_s,
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "MapStats":
        return cls(**json.loads(text))


@dataclass(frozen=True)
class CommitRecord:
    """One instance's share of an epoch: blocks written, runs replaced, keys gained and lost."""

    instance: int
    run: BlockRef | None
    replaced: tuple[str, ...]
    output: BlockRef | None
    keys_added: int
    keys_removed: int
    stats: MapStats
    report: InstanceReport

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "CommitRecord":
        fields: dict[str, Any] = json.loads(text)
        for name in ("run", "output"):
            if fields[name] is not None:
                fields[name] = BlockRef.from_json(fields[name])
        fields["replaced"] = tuple(fields["replaced"])
        fields["stats"] = MapStats(**fields["stats"])
        fields["report"] = InstanceReport(**fields["report"])
        return cls(**fields)
