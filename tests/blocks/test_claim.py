"""The claim: one driver at a time, the dead are replaced at once, the silent after a lease."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest
from blocks_kit import S3Like, everything, s3_store
from claim_kit import STRANGER, path_of, plant

from springtide.blocks import claim as claim_module
from springtide.blocks.claim import DIRECTORY, LEASE_S, Claim, Holder, alive, claim, this_process
from springtide.blocks.errors import CheckpointInUse
from springtide.blocks.store import LocalStore


class Clock:
    """Time that passes only while somebody waits; things may happen meanwhile."""

    def __init__(self, then: Callable[[float], None] = lambda now: None) -> None:
        self.now, self.then = 100.0, then

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.then(self.now - 100.0)


def no_waiting(seconds: float) -> None:
    raise AssertionError("it should be clear without waiting")


def driver(store: LocalStore) -> subprocess.Popen[bytes]:
    """Another process that has claimed the checkpoint and lives on."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from springtide.blocks.claim import claim; from springtide.blocks.store import LocalStore\n"
        "claim(LocalStore(Path(sys.argv[1]))); print('claimed', flush=True); time.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(store.root)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"claimed\n"
    process.stdout.close()
    return process


def test_generations_count_the_drivers(store: LocalStore) -> None:
    for generation in (1, 2, 3):
        held = claim(store, wait=no_waiting)
        assert held.generation == generation
        held.release()
    assert path_of(1) not in [f"{DIRECTORY}/{n}" for n in store.list(DIRECTORY)], "old ones are tidied away"


def test_a_second_driver_is_refused_before_it_writes_anything(store: LocalStore, take: Callable[..., Claim]) -> None:
    take()
    before = everything(store)
    with pytest.raises(
        CheckpointInUse, match=rf"is in use by process {os.getpid()} on {socket.gethostname()}"
    ) as caught:
        claim(store, wait=no_waiting)
    assert caught.value.checkpoint == store.url
    assert everything(store) == before


def test_a_second_process_is_refused_and_a_killed_one_replaced_at_once(
    store: LocalStore, take: Callable[..., Claim]
) -> None:
    process = driver(store)
    try:
        before = everything(store)
        with pytest.raises(CheckpointInUse, match=f"process {process.pid} on"):
            claim(store, wait=no_waiting)
        assert everything(store) == before
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert take(wait=no_waiting).generation == 2, "dead, though nobody has taken note of it yet (a zombie)"
    finally:
        process.kill()
        process.wait()


def test_a_stopped_process_is_not_dead(store: LocalStore) -> None:
    process = driver(store)
    try:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(CheckpointInUse):
            claim(store, wait=no_waiting)
    finally:
        process.kill()
        process.wait()


def test_another_process_with_the_number_of_the_dead_one_is_not_mistaken_for_it(
    store: LocalStore, take: Callable[..., Claim]
) -> None:
    plant(store, replace(this_process(), started="1"))
    assert take(wait=no_waiting).generation == 2


def test_a_machine_that_was_started_anew_has_none_of_its_old_processes(store: LocalStore) -> None:
    assert alive(this_process()) is True
    assert alive(replace(this_process(), started="1")) is False
    assert alive(replace(this_process(), boot="before")) is None
    assert alive(replace(this_process(), host="elsewhere")) is None
    assert alive(replace(this_process(), boot="")) is None


def test_a_silent_driver_elsewhere_is_replaced_after_the_lease_and_not_before(
    store: LocalStore, take: Callable[..., Claim]
) -> None:
    plant(store, STRANGER)
    waited: list[float] = []
    clock = Clock(waited.append)
    held = take(now=clock, wait=clock.wait)
    assert held.generation == 2
    assert LEASE_S <= max(waited) <= LEASE_S + 2


@pytest.mark.parametrize("after_s", [1, 10, LEASE_S])
def test_a_beating_driver_elsewhere_is_not_replaced(store: LocalStore, after_s: float) -> None:
    plant(store, STRANGER)

    def beat(passed_s: float) -> None:
        if passed_s >= after_s:
            plant(store, replace(STRANGER, beat=4))

    clock = Clock(beat)
    with pytest.raises(CheckpointInUse, match="process 4711 on another-host"):
        claim(store, now=clock, wait=clock.wait)
    assert store.list(DIRECTORY) == ["000000001.json"]


def test_a_clock_on_the_wall_that_jumps_does_not_matter(store: LocalStore, take: Callable[..., Claim]) -> None:
    """What counts is whether the beat changes while we watch, not what anybody's clock says."""
    plant(store, replace(STRANGER, beat=10**12))
    clock = Clock()
    assert take(now=clock, wait=clock.wait).generation == 2


def test_a_driver_elsewhere_that_gives_back_is_replaced_without_waiting_longer(
    store: LocalStore, take: Callable[..., Claim]
) -> None:
    plant(store, STRANGER)
    clock = Clock(lambda passed_s: plant(store, replace(STRANGER, released=True, beat=0)))
    assert take(now=clock, wait=clock.wait).generation == 2
    assert clock.now < 100 + LEASE_S / 2


def test_of_two_that_wait_for_a_silent_driver_one_gets_it(store: LocalStore, take: Callable[..., Claim]) -> None:
    plant(store, STRANGER)
    clock = Clock()

    def the_other_is_faster(passed_s: float) -> None:
        if store.list(DIRECTORY) == ["000000001.json"]:
            plant(store, replace(STRANGER, host="a-third-host"), 2)
            store.delete([path_of(1)])

    clock.then = the_other_is_faster
    with pytest.raises(CheckpointInUse, match="a-third-host"):
        claim(store, now=clock, wait=clock.wait)
    assert store.list(DIRECTORY) == ["000000002.json"]


def test_of_two_that_claim_at_once_one_gets_it() -> None:
    bucket = S3Like()
    store = s3_store(bucket)

    def faster(call: str, path: str) -> None:
        if call == "put" and not bucket.store:
            bucket.fail = lambda call, path: None
            plant(store, STRANGER)

    bucket.fail = faster
    with pytest.raises(CheckpointInUse, match="process 4711 on another-host"):
        claim(store)
    assert store.list(DIRECTORY) == ["000000001.json"]


def test_a_driver_that_looked_long_ago_cannot_claim_a_generation_that_is_over() -> None:
    """It saw generation 1 given back, slept, and wakes up when others have held 2 and hold 3."""
    bucket = S3Like()
    store = s3_store(bucket)
    plant(store, replace(STRANGER, released=True))

    def sleep_before_the_put(call: str, path: str) -> None:
        if call == "put":
            bucket.fail = lambda call, path: None
            second = claim(store)
            second.release()
            others.append(claim(store))

    others: list[Claim] = []
    bucket.fail = sleep_before_the_put
    try:
        with pytest.raises(CheckpointInUse):
            claim(store)
        assert [o.generation for o in others] == [3]
        assert path_of(3).rpartition("/")[2] == store.list(DIRECTORY)[-1]
    finally:
        for other in others:
            other.release()


def test_strange_files_beside_the_claims_do_not_matter(store: LocalStore, take: Callable[..., Claim]) -> None:
    store.put(f"{DIRECTORY}/README", b"hello")
    store.put(f"{DIRECTORY}/7", b"hello")
    assert take().generation == 1
    assert store.get(f"{DIRECTORY}/README") == b"hello"


def test_a_holder_survives_as_bytes_that_people_can_read() -> None:
    assert Holder.decode(STRANGER.encode()) == STRANGER
    assert json.loads(STRANGER.encode()) == asdict(STRANGER)
    assert str(STRANGER) == "process 4711 on another-host"


def test_a_claim_that_an_earlier_release_gave_back() -> None:
    fields = asdict(STRANGER)
    for name in ("released", "namespace"):
        del fields[name]
    assert Holder.decode(json.dumps({**fields, "pid": -1}).encode()).released
    assert not Holder.decode(json.dumps(fields).encode()).released


def test_a_process_of_another_namespace_may_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same machine, and the same process number: another container's, that nobody here can look up."""
    me = this_process()
    assert alive(me) is True
    assert alive(replace(me, pid=2**22 + 1)) is False
    monkeypatch.setattr(claim_module, "_namespace", lambda: "pid:[1]")
    assert alive(me) is None
    assert alive(replace(me, pid=2**22 + 1)) is None
