"""Spark's daemon that forks Python workers, with all loaded that they need: a new one has it from the start.

Spark lets a worker go when it has been idle for a minute, and starts one more whenever more tasks run at once than
before. Each would load the same modules anew, for a second or two, and the epoch would wait for it.

A fork takes over one thread alone. Of what is loaded here, Arrow's allocator has one more, and knows how to go on
without it in the child; NumPy's BLAS has none, as Spark sets OMP_NUM_THREADS to the cores of a task.
"""

import gc
import socket

import pyspark.daemon
import pyspark.worker

import springtide.engine.worker.copy
import springtide.engine.worker.restore
import springtide.engine.worker.stateless
import springtide.engine.worker.store
import springtide.engine.worker.update  # noqa: F401
from springtide.engine.worker.memory import keep_freed_memory

work = pyspark.daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """A worker, after the fork. That Spark has ended is no fault of it: nobody wants a traceback of that."""
    try:
        return work(sock, authenticated)
    except ConnectionError:  # To Spark: those of a user's function are told to Spark.
        return 1


if __name__ == "__main__":
    keep_freed_memory()
    gc.freeze()
    pyspark.daemon.worker = worker
    pyspark.daemon.manager()
