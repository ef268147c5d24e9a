"""Drivers that do one store call at a time, as somebody else says: any interleaving of any number of them.

Each runs in a thread of its own, with the real claim, generation, history and collector. Only Spark and the blocks'
content are made up: the rows of an epoch are a token that is in the log entry of its offsets, and the state is all
tokens so far, in some blocks.
"""

import threading
from collections.abc import Callable, Iterable, Sequence, Set
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar

from springtide.blocks.block import OUTPUT, RUN, BlockRef, block_name
from springtide.blocks.claim import DIRECTORY as DRIVERS
from springtide.blocks.claim import LEASE_S, Claim, claim
from springtide.blocks.collect import Collector
from springtide.blocks.errors import CheckpointInUse, TakenOver
from springtide.blocks.generation import SPARK, open_generation
from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.blocks.slice_set import SliceSet
from springtide.blocks.store import Store
from springtide.engine.durability.history import History
from springtide.engine.durability.interval import Interval
from springtide.ids import Epoch, InstanceId, PlanVersion

PATIENCE_S = 60.0
STEP = "count"
T = TypeVar("T")
_TOKENS = count()


class Killed(BaseException):
    """The driver is gone."""


class Turn:
    """Lets a thread go on for one store call at a time."""

    def __init__(self) -> None:
        self._go, self._waits = threading.Semaphore(0), threading.Semaphore(0)
        self.killed = self.ended = False

    def call(self, effect: Callable[[], T]) -> T:
        self._waits.release()
        self._go.acquire()
        if self.killed:
            raise Killed
        return effect()

    def end(self) -> None:
        self.ended = True
        self._waits.release()

    def step(self) -> None:
        """Let it do one call; returns when it waits for the next, or has ended."""
        self._go.release()
        self.await_it()

    def await_it(self) -> None:
        assert self._waits.acquire(timeout=PATIENCE_S), "a driver waits for something else than its turn"


class TurnStore:
    """A store whose every call waits for its turn."""

    def __init__(self, inner: Store, turn: Turn) -> None:
        self.inner, self.turn, self.url = inner, turn, inner.url

    def put(self, name: str, data: Any) -> None:
        self.turn.call(lambda: self.inner.put(name, data))

    def put_if_absent(self, name: str, data: Any) -> None:
        self.turn.call(lambda: self.inner.put_if_absent(name, data))

    def copy(self, name: str, to: str) -> None:
        data = self.get(name)
        self.put(to, data)

    def get(self, name: str) -> bytes:
        return self.turn.call(lambda: self.inner.get(name))

    def list(self, prefix: str) -> list[str]:
        return self.turn.call(lambda: self.inner.list(prefix))

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.turn.call(lambda name=name: self.inner.delete([name]))  # type: ignore[misc]

    def remove(self, directory: str) -> None:
        self.turn.call(lambda: self.inner.remove(directory))

    def tidy(self, prefix: str) -> None:
        self.turn.call(lambda: self.inner.tidy(prefix))


class World:
    """What all drivers share: the checkpoint's store, the blocks' content, and a sink."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.content: dict[str, tuple[str, ...]] = {}
        """By block: the tokens in it."""
        self.published: list[tuple[Epoch, str]] = []
        """What drivers have published, repeats and all."""


class Inline:
    """A pool that does its work at once, in the thread that asks for it."""

    def submit(self, function: Callable[..., T], *arguments: Any) -> "Future[T]":
        made: Future[T] = Future()
        try:
            made.set_result(function(*arguments))
        except Exception as error:
            made.set_exception(error)
        return made

    def shutdown(self, wait: bool = True) -> None:
        """Nothing is under way."""


class Driver:
    """A life: it claims, opens its generation, and runs epochs until it is told to stop, killed or taken over."""

    def __init__(self, world: World, every: int, merge: int, store: Store, epochs: int | None = None) -> None:
        self.world, self.every, self.merge, self.store, self.epochs = world, Interval(every), merge, store, epochs
        self.held: Claim | None = None
        self.history: History | None = None
        self.failure: Exception | None = None
        self.loses_workers = False
        """All of them, before the next epoch."""
        self._here: set[str] = set()
        """Blocks on this driver's workers."""

    def live(self) -> None:
        try:
            self._live()
        except (TakenOver, CheckpointInUse) as error:
            self.failure = error
        except Exception:
            # Its successor removes what it has: whatever goes wrong then is no matter, as long as it ends.
            if self.held is None or max(map(_generation, self.world.store.list(DRIVERS))) <= self.held.generation:
                raise
        finally:
            if self.held is not None:
                self.held._done.set()

    def _live(self) -> None:
        hours = count(0, 2 * LEASE_S)  # Nobody is waited for: whoever holds the checkpoint was silent for a lease.
        self.held = claim(self.store, now=lambda: float(next(hours)), wait=lambda seconds: None)
        own = open_generation(self.store, self.held)
        history = self.history = History(own, self.every, self._deposit, fence=self.held)
        history.durability._pool = Inline()  # type: ignore[assignment]
        self._collector = Collector(history.log, self.store)
        self._collector.start(history.head)
        left = self.epochs
        while left is None or left > 0 or history.replay is not None:
            alone = history.feed_spark()
            while left is None or left > 0 or alone:
                if self.loses_workers:
                    self._go_back(history)
                    break
                self._epoch(own, history)
                if alone:
                    break
                left = None if left is None else left - 1
            if left == 0 and not alone:
                return

    def _go_back(self, history: History) -> None:
        self.loses_workers = False
        self._here.clear()
        if not history.durability.covers(history.head):
            history.go_back()
            self._collector = Collector(history.log, self.store)
            self._collector.start(history.head)

    def _epoch(self, own: Store, history: History) -> None:
        """As Spark does: the offsets are logged, the epoch is run, and then logged as done."""
        logged, done = ([int(n) for n in own.list(f"{SPARK}/{log}")] for log in ("offsets", "commits"))
        last = max(logged, default=-1)
        epoch = Epoch(last + 1 if last == max(done, default=-1) else last)
        if epoch not in logged:
            own.put(f"{SPARK}/offsets/{epoch}", f"v1\n{{}}\n{next(_TOKENS)}".encode())
        token = own.get(f"{SPARK}/offsets/{epoch}").decode().splitlines()[2]
        head = history.head
        if head is not None and head.epoch == epoch:
            history.log.fence.check()
        else:
            head = self._compute(history, head, epoch, token)
        if not history.published(epoch):
            self.world.published.append((epoch, token))
        if head is not None and head.epoch == epoch and head.driver == self._generation:
            history.durability.committed(head, repeated=history.repeated(epoch))
            pins = history.durability.pins()
            self._collector.committed(head, pins.blocks, depositing=pins.depositing)
        own.put(f"{SPARK}/commits/{epoch}", b"v1\n{}")

    @property
    def _generation(self) -> int:
        assert self.held is not None
        return self.held.generation

    def _compute(self, history: History, head: Manifest | None, epoch: Epoch, token: str) -> Manifest:
        assert epoch == (0 if head is None else head.epoch + 1), "Spark and the manifests disagree"
        runs = () if head is None else head.operators[STEP].runs
        for run in runs:
            assert run.name in self._here or run.name in self.store.list("blocks"), f"{run.name} is nowhere"
        if len(runs) >= self.merge:
            tokens = tuple(t for run in runs for t in self.world.content[run.name])
            runs = (self._write(epoch, RUN, (*tokens, token)),)
        else:
            runs = (*runs, self._write(epoch, RUN, (token,)))
        output = self._write(epoch, OUTPUT, (token,))
        manifest = Manifest(
            "app",
            epoch,
            "" if head is None else head.id,
            PlanVersion(1),
            self._generation,
            {STEP: OperatorState(runs)},
            {STEP: (output,)},
            (token,),
            self.every.each_epoch,
        )
        history.commit(manifest, head)
        return manifest

    def _write(self, epoch: Epoch, kind: str, tokens: tuple[str, ...]) -> BlockRef:
        name = block_name(STEP, epoch, InstanceId(0), kind)
        self.world.content[name] = tokens
        self._here.add(name)
        if self.every.each_epoch or kind == OUTPUT:
            self.store.put(f"blocks/{name}", b"durable")
        return BlockRef(name, STEP, epoch, len(tokens), 1, 0, SliceSet.of([0]))

    def _deposit(self, states: Sequence[States], stored: Set[str]) -> list[States] | None:
        for state in states:
            for run in (run for operator in state.values() for run in operator.runs):
                if run.name not in stored:
                    assert run.name in self._here, "what is not durable is on the workers of whoever wrote it"
                    self.store.put(f"blocks/{run.name}", b"durable")
        return [{step: replace(operator) for step, operator in state.items()} for state in states]


def _generation(name: str) -> int:
    return int(name.partition(".")[0])


def tokens_of(world: World, head: Manifest) -> list[str]:
    """The state after an epoch; its blocks have to be durable."""
    there = set(world.store.list("blocks"))
    for run in head.operators[STEP].runs:
        assert run.name in there, f"{run.name} is named by epoch {head.epoch}, and nowhere"
    return [token for run in head.operators[STEP].runs for token in world.content[run.name]]
