"""A nemesis: faults chosen at random, from a seed, against an app on several workers."""

import random
import time
from collections.abc import Callable

from cluster_kit import PATIENCE_S, SLICES, STEPS, Cluster

from springtide.control.api.protocol import Busy, Refused, under_way

FEWEST, MOST = 2, 4
PAUSE_S = (0.5, 4.0)
STRATEGIES = ("progressive", "handover", "lazy")


class Nemesis:
    """Does harm, makes sure that it was done, and keeps a diary."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.diary: list[str] = []
        self.faults: dict[str, Callable[[], str]] = {
            "kill": self.kill,
            "scale": self.scale,
            "wipe": self.wipe,
            "pause": self.pause,
            "move": self.move,
            "cancel": self.cancel,
        }

    def strike(self, fault: str) -> None:
        """One fault; the app must get on afterwards."""
        began = time.monotonic()
        before = self.cluster.epoch
        what = self.faults[fault]()
        self.cluster.epochs(2)
        epochs = self.cluster.epoch - before
        self.diary.append(f"epoch {before}: {what}; {epochs} epochs in {time.monotonic() - began:.1f} s")
        print(self.diary[-1], flush=True)

    def victim(self) -> str:
        """A worker of the plan that is a living process."""
        living = self.cluster.driver.executors()
        return self.random.choice([w for w in self.cluster.workers() if w in living])

    def kill(self) -> str:
        victim = self.victim()
        self.cluster.kill(victim)
        return f"killed worker {victim}"

    def pause(self) -> str:
        """Stop a worker, and what it has started, and let it go on."""
        victim, seconds = self.victim(), self.random.uniform(*PAUSE_S)
        with self.cluster.stopped(self.cluster.executor(victim).family()):
            time.sleep(seconds)  # The fault itself, not a wait.
        return f"stopped worker {victim} for {seconds:.1f} s"

    def wipe(self) -> str:
        living = [w for w in self.cluster.workers() if (self.cluster.local / w).exists()]
        victim = self.random.choice(living)
        lost = self.cluster.wipe(victim)
        assert lost
        return f"wiped the {len(lost)} blocks of worker {victim}"

    def scale(self) -> str:
        """To another number of workers; what was under way ends first, the new one goes on beside later faults."""
        while True:
            self.idle()
            now = len(self.cluster.ready())
            wanted = self.random.choice([n for n in range(FEWEST, MOST + 1) if n != now])
            strategy = self.random.choice(STRATEGIES)
            migration = self.ask(lambda n=wanted, how=strategy: self.cluster.client.scale(n, how))  # type: ignore[misc]
            if under_way(migration):  # Else a worker came or went in between, and there was nothing to do.
                return f"migration {migration['id']}: {migration['what']}, {strategy}"

    def move(self) -> str:
        self.idle()
        step, strategy = self.random.choice(STEPS), self.random.choice(STRATEGIES)
        to = self.victim()
        others = sorted(set(range(SLICES)) - self.cluster.owners()[step].get(to, frozenset()))
        if not others:  # One worker is left, and has them all.
            return self.scale()
        slices = ",".join(map(str, sorted(self.random.sample(others, min(5, len(others))))))
        migration = self.ask(lambda: self.cluster.client.move(step, slices, to, strategy))
        return f"migration {migration['id']}: {migration['what']}, {strategy}"

    def cancel(self) -> str:
        """Cancel what is under way, or else something that is begun for it."""
        begun = ""
        if not under_way(self.cluster.client.migration()):
            begun = f"{self.scale()}; "
        try:
            migration = self.cluster.client.cancel()
        except Refused:
            return f"{begun}too late to cancel it"
        return f"{begun}cancelled migration {migration['id']}"

    def idle(self) -> None:
        """Wait until nothing moves."""
        self.cluster.until("no migration", lambda: not under_way(self.cluster.client.migration()), 2 * PATIENCE_S)

    def ask(self, request: Callable[[], dict[str, object]]) -> dict[str, object]:
        """Ask for a migration; one that heals a loss may come in between, and goes first."""
        while True:
            try:
                return request()
            except Busy:
                self.idle()
