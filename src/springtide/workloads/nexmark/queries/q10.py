"""Log to files: every bid in a directory of its day and minute.

The query gives each bid with the names of its directory; `log` is a sink that writes it there.
"""

from typing import TYPE_CHECKING

from springtide.connectors import sinks
from springtide.dataflow.sink_spec import SinkSpec
from springtide.dataflow.stream import Stream
from springtide.workloads.nexmark.inputs import Inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def query(inputs: Inputs) -> Stream:

    return inputs.bid("auction", "bidder", "price", "date_time", "extra").transform(
        "dated",
        lambda df: df.selectExpr(
            "*", "date_format(date_time, 'yyyy-MM-dd') AS dt", "date_format(date_time, 'HH:mm') AS hm"
        ),
    )


def log(directory: str) -> SinkSpec:
    """Files `DIRECTORY/epoch=N/dt=2025-03-02/hm=00:00/…`. An epoch that comes again replaces what it wrote."""

    def write(rows: "DataFrame", epoch: int) -> None:
        rows.write.mode("overwrite").partitionBy("dt", "hm").parquet(f"{directory}/epoch={epoch}")

    return sinks.foreach_epoch(write)
