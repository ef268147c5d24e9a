"""An integer overflow on a worker, as the driver tells it: the step, the key, and what to do."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PythonException

from springtide.dataflow.errors import StepFailed
from springtide.engine.wire.job_errors import explain
from springtide.engine.worker.prepare import HASH, PrepareRows
from springtide.engine.worker.task_context import naming
from springtide.state.aggregate import AggregateLogic
from springtide.state.aggregates import functions
from springtide.state.chain import Chain
from springtide.state.logic import Moment
from springtide.state.update import update

ROWS = pa.schema([("k", pa.string()), ("v", pa.int64())])
LOGIC = AggregateLogic(pa.schema([ROWS.field("k")]), ROWS, {"total": functions.sum("v")}, 8)


def rows(*values: int) -> pa.RecordBatch:
    columns = {"k": ["bad key"] * len(values), "v": list(values), HASH: np.zeros(len(values), np.int64)}
    return pa.RecordBatch.from_pydict(columns)


def check(failed: StepFailed, doing: str) -> None:
    """Also after Spark has carried it to the driver as the text of a traceback."""
    trace = f'Traceback (most recent call last):\n  File "x.py"\nspringtide.dataflow.errors.StepFailed: {failed}\n'
    carried = explain(PythonException(message=trace), "another")
    for error in (failed, carried):
        assert (error.step, error.doing) == ("totals", doing)
        assert "NumericOverflow: 'total' of column 'v'" in error.reason
        assert '{"k": "bad key"}' in error.reason
        assert "Cast the column to DOUBLE" in error.reason


def test_where_rows_are_read() -> None:
    prepare = PrepareRows("totals", LOGIC, ("k",), ROWS, 8, (), Moment())
    with pytest.raises(StepFailed) as caught:
        list(prepare.arrivals([rows(2**63 - 1, 1)]))
    check(caught.value, "preparing its rows")


def test_where_the_state_is() -> None:
    prepare = PrepareRows("totals", LOGIC, ("k",), ROWS, 8, (), Moment())
    arrivals = [ready.rows for _ in range(2) for ready in prepare.arrivals([rows(2**62)])]
    with pytest.raises(StepFailed) as caught, naming("totals", "updating its state"):
        update(LOGIC, Chain([], LOGIC.layout), arrivals, Moment())
    check(caught.value, "updating its state")
