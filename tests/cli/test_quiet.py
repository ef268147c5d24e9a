from springtide.cli.shared.quiet import worth_reading

IDLE_WORKER = (
    b"Traceback (most recent call last):\n"
    b'  File "/lib/pyspark.zip/pyspark/daemon.py", line 264, in manager\n'
    b"BrokenPipeError: [Errno 32] Broken pipe\n"
)
USER_ERROR = (
    b"Traceback (most recent call last):\n"
    b'  File "/home/me/app.py", line 3, in <module>\n'
    b"    write()\n"
    b"BrokenPipeError: [Errno 32] Broken pipe\n"
)
WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector\n"


def read(text: bytes) -> bytes:
    return b"".join(worth_reading(text.splitlines(keepends=True)))


def test_noise_goes_and_all_else_stays_in_order() -> None:
    given = WARNING + b"one\n" + IDLE_WORKER + USER_ERROR + b"two\n" + IDLE_WORKER
    assert read(given) == b"one\n" + USER_ERROR + b"two\n"


def test_a_traceback_that_is_cut_off_is_shown() -> None:
    assert read(USER_ERROR[:80]) == USER_ERROR[:80]


def test_a_stack_of_a_stopping_spark_goes() -> None:
    stack = (
        b"java.util.concurrent.RejectedExecutionException: Task rejected [Shutting down]\n"
        b"\tat java.base/java.util.concurrent.ThreadPoolExecutor.reject(ThreadPoolExecutor.java:833)\n"
        b"Caused by: java.lang.IllegalStateException: closed\n"
        b"\t... 8 more\n"
    )
    other = b"java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(D.java:1)\n"
    assert read(b"one\n" + stack + other + b"two\n") == b"one\n" + other + b"two\n"


def test_a_thread_that_finds_spark_ended_says_nothing() -> None:
    head = b'Exception in thread "stream execution thread" org.apache.spark.SparkException: in awaitResult: \n'
    frame = b"\tat org.apache.spark.rpc.RpcEndpointRef.askSync(RpcEndpointRef.scala:101)\n"
    ended = head + frame + b"Caused by: org.apache.spark.rpc.RpcEnvStoppedException: RpcEnv already stopped.\n" + frame
    other = head + frame + b"Caused by: java.lang.OutOfMemoryError: Java heap space\n" + frame + b"\t... 8 more\n"
    assert read(b"one\n" + ended + b"two\n" + other + b"three\n" + ended) == b"one\ntwo\n" + other + b"three\n"
    assert read(other) == other
    assert read(ended + other + ended) == other


def test_a_workers_traceback_that_was_cut_short_as_the_jvm_ended_goes() -> None:
    lines = IDLE_WORKER.splitlines(keepends=True)
    for some in range(1, len(lines)):
        assert read(b"".join([b"one\n", *lines[:some]])) == b"one\n"


def test_a_source_whose_jvm_has_ended_says_nothing() -> None:
    frame = b'  File "/lib/pyspark.zip/pyspark/sql/streaming/python_streaming_source_runner.py", line 265, in main\n'
    socket = b'  File "/usr/lib/python3.11/socket.py", line 724, in write\n    return self._sock.send(b)\n'
    frozen = b'  File "<frozen runpy>", line 88, in _run_code\n'
    first = b"Traceback (most recent call last):\n" + frozen + frame + b"EOFError\n"
    second = b"Traceback (most recent call last):\n" + frame + socket + b"BrokenPipeError: [Errno 32] Broken pipe\n"
    chain = b"\nDuring handling of the above exception, another exception occurred:\n\n"
    assert read(b"one\n" + first + chain + second + b"two\n") == b"one\ntwo\n"
    assert read(first + b"\nthree\n") == b"\nthree\n", "a blank line that leads nowhere stays"
    assert read(first + chain + USER_ERROR) == USER_ERROR
    failed = b"Traceback (most recent call last):\n" + frame + b"ValueError: of the source\n"
    assert read(failed) == failed
