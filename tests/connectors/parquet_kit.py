"""Epochs for the Parquet sink without Spark, in parts as they are told, and what readers see."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


def words(*some: str) -> pa.Table:
    """Rows with these words."""
    return pa.table({"word": list(some), "n": list(range(len(some)))}, schema=SCHEMA)


@dataclass
class Output:
    """An epoch's rows, one string of words a part; letters stand for words."""

    epoch: int
    parts: Sequence[str] = ()
    generation: int = 1
    lineage: str = "one"
    sink: str = "out"
    key: tuple[str, ...] = ("word",)
    schema: pa.Schema = field(default=SCHEMA)
    meanwhile: Callable[[int], None] = field(default=lambda part: None)
    """Called with its number after each part that is written."""
    write: Any = None

    def each_part(self, function: Callable[[int, pa.Table], None], parts: int | None = None) -> list[int]:
        self.write = function
        given = self.parts if parts is None else self._hashed(parts)
        filled = [(number, rows) for number, rows in enumerate(given) if rows]
        for number, rows in filled:
            function(number, words(*rows))
            self.meanwhile(number)
        return [number for number, _ in filled]

    def _hashed(self, parts: int) -> list[str]:
        together = "".join(self.parts)
        return ["".join(w for w in together if crc32(w.encode()) % parts == number) for number in range(parts)]

    def dataframe(self) -> Any:
        raise NotImplementedError

    table = dataframe

    def top(self, column: str, n: int) -> pa.Table:
        raise NotImplementedError


def seen(dataset: Path) -> dict[int, Counter[str]]:
    """By epoch, the words that a reader of plain files sees."""
    found: dict[int, Counter[str]] = {}
    for file in dataset.glob("epoch=*/*.parquet"):
        epoch = int(file.parent.name.removeprefix("epoch="))
        found.setdefault(epoch, Counter()).update(pq.ParquetFile(file).read()["word"].to_pylist())
    return found


def whole(*epochs: str) -> dict[int, Counter[str]]:
    """What has to be seen: the words of each epoch that has some."""
    return {epoch: Counter(letters) for epoch, letters in enumerate(epochs) if letters}


def files(dataset: Path) -> dict[str, bytes]:
    """Every file below a directory, with its bytes."""
    return {str(p.relative_to(dataset)): p.read_bytes() for p in sorted(dataset.rglob("*")) if p.is_file()}
