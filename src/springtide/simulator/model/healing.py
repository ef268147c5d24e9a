"""Losses: who stands by takes over on the ring, and sees the rows since its copy; else the app goes back."""

from collections.abc import Iterable

import numpy as np
import simpy

from springtide.ids import WorkerId
from springtide.plan.ring import Ring
from springtide.simulator.model.moving import Mover
from springtide.simulator.model.placement import Ints
from springtide.simulator.report.books import Books
from springtide.simulator.report.story import FAILURE, Story
from springtide.simulator.scenario.scenario import Outage

REACH = 16
"""Neighbours counter-clockwise whose replicas may have been on a lost worker."""


class Healer:
    """Knows which copies are whole, and puts them in charge."""

    def __init__(self, env: simpy.Environment, mover: Mover, story: Story) -> None:
        self.env, self.mover, self.story = env, mover, story
        self.scenario, self.books, self.placement = mover.scenario, mover.books, mover.placement
        self.lost: set[WorkerId] = set()
        """Lost, and not known to be."""
        self.durable: Books = self.books.copy()
        self._whole_at: dict[tuple[WorkerId, WorkerId], float] = {}
        """By owner and who stands by for it: when the copy is whole; from the start if it is not told."""

    def strike(self, outage: Outage, rng: np.random.Generator) -> None:
        """Workers are lost: neighbours on the ring, or every n-th one, as the outage says."""
        alive = [worker for worker in self.placement.ring.workers if worker not in self.lost]
        first = int(rng.integers(len(alive)))
        self.lose(alive[(first + i * outage.every) % len(alive)] for i in range(outage.workers))

    def lose(self, workers: Iterable[WorkerId]) -> None:
        """Workers are gone; nobody knows yet."""
        gone = set(workers)
        self.lost |= gone
        self.story.tell(self.env.now, FAILURE, f"lost {_named(gone)}", workers=len(gone))

    def heal(self) -> tuple[float, bool]:
        """Give every slice of the lost workers an owner. Seconds that it takes; whether the app had to go back."""
        lost, self.lost = frozenset(self.lost), set()
        placement, before = self.placement, self.placement.ring
        on_ring = lost.intersection(before.workers)
        seconds = 0.0
        if len(on_ring) < len(before.workers):
            after = before.without(on_ring)
        else:
            after, seconds = self._all_new(lost)
        orphans = self._orphans(lost)
        placement.ring = after
        self.mover.lost(lost)
        went_back = False
        owners = placement.owners_on(after)
        for name, slices in orphans.items():
            heirs = self._heirs(before, slices, lost)
            went_back = went_back or bool((heirs < 0).any())
            placement.give(name, slices, np.where(heirs < 0, owners[slices], heirs))
        if went_back:
            seconds += self._go_back(orphans)
        else:
            self._see_again(orphans)
        self._stand_by_anew(before, after, on_ring)
        return seconds, went_back

    def _all_new(self, lost: frozenset[WorkerId]) -> tuple[Ring, float]:
        """Nobody on the ring is left: those who were on their way make a ring, or else as many new ones; and when."""
        cluster, placement = self.scenario.cluster, self.placement
        there = [w for w in placement.workers if w.id in self.mover.paid and w.id not in lost]
        if there:
            return Ring.even(placement.slices, there[: placement.slices]), cluster.warm_up_s
        new = placement.hire(len(placement.ring.workers))
        self.mover.paid |= {worker.id for worker in new}
        return Ring.even(placement.slices, new), cluster.start_s + cluster.warm_up_s

    def _orphans(self, lost: frozenset[WorkerId]) -> dict[str, Ints]:
        """By operator: the slices that lost workers own."""
        gone = [self.placement.number[worker] for worker in lost]
        found = {name: np.flatnonzero(np.isin(owner, gone)) for name, owner in self.placement.owner.items()}
        return {name: slices for name, slices in found.items() if len(slices)}

    def _heirs(self, ring: Ring, slices: Ints, lost: frozenset[WorkerId]) -> Ints:
        """By slice: who has a whole copy and takes over; -1 if nobody has."""
        found = np.full(len(slices), -1)
        owners = self.placement.owners_on(ring)[slices]
        for number in np.unique(owners):
            owner = self.placement.workers[number].id
            around = (owner, *ring.backups(owner, self.scenario.state.replicas))
            able = (w for w in around if w not in lost and self._whole(owner, w))
            heir = next(able, None)
            if heir is not None:
                found[owners == number] = self.placement.number[heir]
        return found

    def _whole(self, owner: WorkerId, holder: WorkerId) -> bool:
        return self._whole_at.get((owner, holder), 0.0) <= self.env.now

    def _see_again(self, orphans: dict[str, Ints]) -> None:
        """New owners see the rows since the last peer checkpoint."""
        for operator in self.scenario.operators:
            if operator.name in orphans:
                done = self.books.accounts[operator.name].done
                rows = done - self.mover.checkpoint.get(operator.name, 0)
                self.mover.epochs.owe(operator, max(0, rows), orphans[operator.name])

    def _go_back(self, orphans: dict[str, Ints]) -> float:
        """To the last durable checkpoint: the lost slices are read from the store, rows since are processed again."""
        self.story.went_back += 1
        self.story.repeated_rows += self.books.go_back(self.durable)
        self.mover.checkpoint = {name: account.done for name, account in self.books.accounts.items()}
        sizes = {operator.name: self.placement.bytes_of(operator) for operator in self.scenario.operators}
        restored = np.zeros(len(self.placement.workers))
        for name, slices in orphans.items():
            readers = np.bincount(self.placement.owner[name][slices], minlength=len(restored))
            restored += readers * sizes[name]
        return float(restored.max() / self.scenario.cluster.bandwidth_bytes)

    def _stand_by_anew(self, before: Ring, after: Ring, lost: frozenset[WorkerId]) -> None:
        """Who has to stand by now and did not before gets its copies; until then they are not whole."""
        r = self.scenario.state.replicas
        a_slice = sum(self.placement.bytes_of(operator) for operator in self.scenario.operators)
        for owner in _near(before, lost) & set(after.workers):
            holders = before.backups(owner, r) if owner in before.zones else ()
            heir = after.length(owner) != (before.length(owner) if owner in before.zones else 0)
            copied_s = after.length(owner) * a_slice / self.scenario.cluster.bandwidth_bytes
            for holder in after.backups(owner, r):
                if holder not in holders or heir:
                    self._whole_at[owner, holder] = self.env.now + copied_s


def _near(ring: Ring, lost: frozenset[WorkerId]) -> set[WorkerId]:
    """Neighbours of lost workers on both sides."""
    found: set[WorkerId] = set()
    for worker in lost:
        at = ring.workers.index(worker)
        found |= {ring.workers[(at + i) % len(ring.workers)] for i in range(-REACH, REACH)}
    return found


def _named(workers: set[WorkerId]) -> str:
    first = ", ".join(sorted(workers)[:5])
    return first if len(workers) <= 5 else f"{first} and {len(workers) - 5} more"
