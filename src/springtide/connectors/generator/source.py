"""The generator as a source: seeded rows that are due by the wall clock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from springtide.connectors.generator.gauge import GeneratorGauge
from springtide.connectors.generator.rates import Rate, constant
from springtide.connectors.generator.rows import GeneratorSpec
from springtide.dataflow.source_spec import SourceSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from springtide.connectors.open_source import OpenSource


@dataclass(frozen=True)
class Generator(SourceSpec):
    """Seeded rows that are due by the wall clock, consumed or not."""

    spec: GeneratorSpec
    kind: str = "generator"

    @property
    def admits(self) -> bool:
        return self.spec.max_rows_per_epoch is None

    @property
    def holds(self) -> bool:
        return True

    @property
    def counts_rows(self) -> bool:
        return True

    def open(self, spark: "SparkSession", step: str, *, placed: bool) -> "OpenSource":
        from springtide.connectors.generator.reader import generator_stream
        from springtide.connectors.open_source import OpenSource
        from springtide.connectors.record_place import of_number

        rows = generator_stream(spark, self.spec)
        return OpenSource.of_rows(rows.select("*", of_number("id")) if placed else rows)

    def gauge(self, step: str, initial_offset: Callable[[], str | None]) -> GeneratorGauge:
        return GeneratorGauge(step, self.spec)


def generator(rate: Rate | float, **options: Any) -> Generator:
    """Seeded, open-loop rows; options are those of GeneratorSpec: seed, limit, keys, skew, words_per_row, ..."""
    return Generator(GeneratorSpec(constant(rate) if isinstance(rate, int | float) else rate, **options))
