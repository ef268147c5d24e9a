"""Standing by, in whatever order things happen: nobody takes over from a state with a hole in it."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from standby_kit import EVERY, SLICES, STEP, Model

from springtide.ids import SliceId, WorkerId
from springtide.plan.worker import Worker

A, B, C, D = map(WorkerId, "abcd")
MOST_WORKERS = 4

some_slices = st.one_of(st.just(EVERY), st.sets(st.sampled_from(sorted(EVERY))).map(frozenset))


class StandingBy(RuleBasedStateMachine):
    """Epochs, peer checkpoints, flips, losses and new replicas in any order."""

    model: Model

    @initialize(slots=st.integers(1, 2), workers=st.integers(3, 4), supplied=st.booleans())
    def start(self, slots: int, workers: int, supplied: bool) -> None:
        crew = (A, B, C, D)[:workers]
        owners = [crew[s * workers // SLICES] for s in range(SLICES)]
        self.model = Model.of(owners, [(crew[(crew.index(o) + 1) % workers],) for o in owners], slots=slots)
        self.joined = self.losses = 0
        self.model.epoch()
        if supplied:
            self.model.begin()
            self.model.end()

    @rule(rows=st.lists(some_slices, min_size=1, max_size=3), fold=st.integers(0, 3))
    def epochs_commit(self, rows: list[frozenset[SliceId]], fold: int) -> None:
        for some in rows:
            self.model.epoch(some, lambda: fold)

    @precondition(lambda self: self.model.checkpoint is None)
    @rule()
    def a_checkpoint_begins(self) -> None:
        self.model.begin()

    @precondition(lambda self: self.model.checkpoint is not None)
    @rule(well=st.sampled_from([True, True, False]), in_an_epoch=st.booleans())
    def a_checkpoint_ends(self, well: bool, in_an_epoch: bool) -> None:
        """Between two epochs, or after one has begun and before it is true."""
        if in_an_epoch:
            self.model.epoch(meanwhile=lambda: self.end(well))
        else:
            self.end(well)

    def end(self, well: bool) -> None:
        if well:
            self.model.end()
        else:
            self.model.give_up()

    @rule(data=st.data(), slices=some_slices)
    def others_stand_by(self, data: st.DataObject, slices: frozenset[SliceId]) -> None:
        model, replicas = self.model, self.model.replicas()
        for number in slices:
            others = [w for w in model.workers if w != model.share.owners[number]]
            replicas[number] = tuple(data.draw(st.permutations(others)))[: data.draw(st.integers(1, 2))]
        model.change(model.share.owners, replicas)

    @rule(slices=some_slices)
    def nobody_stands_by_for_an_epoch(self, slices: frozenset[SliceId]) -> None:
        model, replicas = self.model, self.model.replicas()
        model.change(model.share.owners, [() if s in slices else replicas[s] for s in range(SLICES)])
        model.epoch()
        model.change(model.share.owners, replicas)

    @precondition(lambda self: self.able)
    @rule(data=st.data(), slices=some_slices)
    def slices_flip_to_a_worker_that_is_ready(self, data: st.DataObject, slices: frozenset[SliceId]) -> None:
        """An epoch with all of them flipped follows, or more changes of the plan."""
        model = self.model
        target = data.draw(st.sampled_from(self.able))
        moving = (model.ready(target) & slices) - model.share.owned(target)
        model.flip(sorted(moving), target)
        assert model.served is not None
        taken = {s for b in model.takeovers() if b.worker == target for s in b.slices}
        assert taken >= moving - model.served.operators[STEP].owned(target)
        if data.draw(st.booleans()):
            reads = model.durable_reads
            model.epoch()
            assert model.durable_reads == reads or self.losses

    @property
    def able(self) -> list[WorkerId]:
        """Who could take a slice over."""
        model = self.model
        return [w for w in model.workers if model.ready(w) - model.share.owned(w)]

    @precondition(lambda self: len(self.model.workers) > 2 and self.losses < 2)
    @rule(data=st.data())
    def a_worker_is_lost(self, data: st.DataObject) -> None:
        self.losses += 1
        self.model.lose(data.draw(st.sampled_from(self.model.workers)))

    @precondition(lambda self: len(self.model.workers) < MOST_WORKERS and self.joined < self.losses)
    @rule(slots=st.integers(1, 2))
    def a_worker_comes(self, slots: int) -> None:
        self.joined += 1
        model = self.model
        new = Worker(WorkerId(f"new-{self.joined}"), slots=slots)
        model.change(model.share.owners, model.replicas(), (*model.plan.workers, new))

    @invariant()
    def who_is_ready_could_take_over_from_its_own_disk(self) -> None:
        self.model.check_ready()


StandingBy.TestCase.settings = settings(max_examples=80, stateful_step_count=22, deadline=None)
TestStandingBy = StandingBy.TestCase
