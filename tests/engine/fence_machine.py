"""A machine of Hypothesis: two drivers and more on one checkpoint, in whatever store, call by call."""

import threading
from dataclasses import dataclass

from fence_kit import Driver, Turn, TurnStore, World, tokens_of
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from springtide.blocks.store import ObjectStore, Store


class Memory(MemoryFileSystem):  # type: ignore[misc]
    """Of its own."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, object] = {}
        self.pseudo_dirs = [""]


@dataclass
class Stepped:
    """A driver that goes on when it is told to."""

    driver: Driver
    turn: Turn
    thread: threading.Thread


class Drivers(RuleBasedStateMachine):
    """Any of them does its next store call; a new one takes over at any time, however alive the others are."""

    def store(self) -> Store:
        """A new one."""
        return ObjectStore(Memory(), "/checkpoint", "memory://checkpoint")

    @initialize(every=st.sampled_from([1, 2, 4]), merge=st.integers(1, 3))
    def checkpoint(self, every: int, merge: int) -> None:
        self.every, self.merge = every, merge
        self.world = World(self.store())
        self.drivers: list[Stepped] = []
        self.come(0)

    @precondition(lambda self: len(self.living) < 3)
    @rule(calls=st.integers(0, 150))
    def come(self, calls: int) -> None:
        """A new driver, which takes the others for dead, and is quick at first."""
        turn = Turn()
        driver = Driver(self.world, self.every, self.merge, TurnStore(self.world.store, turn))

        def live() -> None:
            try:
                driver.live()
            except BaseException as error:
                if not turn.killed:
                    self.broken = error
            finally:
                turn.end()

        thread = threading.Thread(target=live, daemon=True)
        self.drivers.append(Stepped(driver, turn, thread))
        thread.start()
        turn.await_it()
        self.go_on(len(self.living) - 1, calls)

    broken: BaseException | None = None

    @property
    def living(self) -> list[Stepped]:
        return [one for one in self.drivers if not one.turn.ended]

    @precondition(lambda self: self.living)
    @rule(which=st.integers(0, 2), calls=st.integers(1, 60))
    def go_on(self, which: int, calls: int) -> None:
        one = self.living[which % len(self.living)]
        for _ in range(calls):
            if not one.turn.ended:
                one.turn.step()
        if self.broken is not None:
            raise self.broken

    @precondition(lambda self: self.living)
    @rule(which=st.integers(0, 2))
    def die(self, which: int) -> None:
        self.kill(self.living[which % len(self.living)])

    @precondition(lambda self: self.living)
    @rule(which=st.integers(0, 2))
    def lose_workers(self, which: int) -> None:
        """What is not durable is gone: the driver goes back, as soon as it looks."""
        self.living[which % len(self.living)].driver.loses_workers = True

    def kill(self, one: Stepped) -> None:
        one.turn.killed = True
        one.turn.step()
        one.thread.join(60)

    @rule()
    def everybody_comes_to_an_end(self) -> None:
        """All that live now do their next calls, in turn, until those that were taken over know it."""
        for _ in range(400):
            for one in self.living[:-1]:
                one.turn.step()
        if self.broken is not None:
            raise self.broken

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for one in self.living:
            self.kill(one)
        if self.broken is not None:
            raise self.broken
        last = Driver(self.world, self.every, self.merge, self.world.store, epochs=3)
        last.live()
        assert last.failure is None
        assert last.history is not None
        last.history.finish()
        head = last.history.head
        assert head is not None
        truth = tokens_of(self.world, last.history.durable or head)
        assert len(truth) == len(set(truth)) == head.epoch + 1
        for epoch, token in self.world.published:
            assert truth[epoch] == token, f"a reader saw other rows of epoch {epoch} than the state has"
        assert {epoch for epoch, _ in self.world.published} == set(range(head.epoch + 1)), "every epoch is published"
