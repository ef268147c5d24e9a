"""Which worker holds what of the state: its own runs, parts of others' runs, and rows kept for its neighbours."""

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from springtide.blocks.manifest import Manifest, OperatorState, States
from springtide.engine.ownership.shared_roster import SharedRoster
from springtide.engine.ownership.standby import Kept, Standbys, owed
from springtide.engine.worker.fault import Fault
from springtide.engine.worker.open_state import Behind, Parts
from springtide.engine.worker.store import Deposit
from springtide.ids import SliceId, WorkerId
from springtide.plan.plan import Plan


class HeldState(Protocol):
    """What an epoch, and whoever makes state durable, ask about the copies on workers."""

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        """How new owners of an operator's slices get to the state they start from."""

    def parts(self) -> Mapping[WorkerId, Parts]:
        """What workers hold of others' runs."""

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
        """An epoch is true; the blocks that workers can let go."""

    def pinned(self) -> set[str]:
        """Blocks that are needed though the last manifests do not name them."""

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        """Who can make which runs durable, beside those that are."""

    def unsound(self, faults: Sequence[Fault]) -> bool:
        """Blocks were found missing or damaged. True if that was not known, so that somebody else may be asked."""

    def went_back(self, head: Manifest | None) -> None:
        """The app goes on from an earlier state: what workers have kept since is of no use."""

    def backup_bytes(self) -> int:
        """Rows that workers keep for their neighbours, until a peer checkpoint covers them."""


class SoleState:
    """The state of one worker that is always there, and has no neighbours."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        return owed(state, self._plan.operators[step])

    def parts(self) -> Mapping[WorkerId, Parts]:
        return {}

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
        return ()

    def pinned(self) -> set[str]:
        return set()

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        runs = (run for state in states.values() for run in state.runs if run.name not in stored)
        return [Deposit(run, run.slices, self._plan.workers[0].id) for run in runs]

    def unsound(self, faults: Sequence[Fault]) -> bool:
        return False

    def went_back(self, head: Manifest | None) -> None:
        return None

    def backup_bytes(self) -> int:
        return 0


class ReplicatedState:
    """The state of several workers that stand by for each other."""

    def __init__(self, shared: SharedRoster) -> None:
        self._shared = shared

    def takeovers(self, step: str, state: OperatorState) -> tuple[Behind, ...]:
        with self._shared.held() as roster:
            share = roster.plan.operators[step]
            stalled = owed(state, share)
            if roster.served is None or roster.head is None:
                return stalled
            before = {SliceId(s): w for s, w in enumerate(roster.served.operators[step].owners)}
            return (*roster.standbys.takeovers(step, share, before, roster.head.epoch, state), *stalled)

    def parts(self) -> Mapping[WorkerId, Parts]:
        with self._shared.held() as roster:
            return roster.standbys.parts()

    def committed(self, manifest: Manifest, parent: Manifest | None, kept: Mapping[str, Kept]) -> tuple[str, ...]:
        with self._shared.held() as roster:
            before = roster.served or roster.plan
            gone = roster.standbys.committed(manifest, parent, roster.plan, before, kept)
            roster.head, roster.served = manifest, roster.plan
            return gone

    def pinned(self) -> set[str]:
        with self._shared.held() as roster:
            return roster.standbys.pinned()

    def deposits(self, states: States, stored: Set[str]) -> list[Deposit]:
        found = []
        with self._shared.held() as roster:
            standbys, plan = roster.standbys, roster.plan
            for step, state in states.items():
                for run in state.runs:
                    if run.name not in stored:
                        holders = standbys.holders(run, run.slices, plan.operators[step], plan)
                        found += [Deposit(run, frozenset(slices), worker) for worker, slices in holders.items()]
        return found

    def unsound(self, faults: Sequence[Fault]) -> bool:
        with self._shared.held() as roster:
            return roster.standbys.unsound(faults)

    def went_back(self, head: Manifest | None) -> None:
        with self._shared.held() as roster:
            left, roster.standbys = roster.standbys.held(), Standbys()
            roster.standbys.given_up(left)
            roster.head, roster.served = head, None

    def backup_bytes(self) -> int:
        with self._shared.held() as roster:
            return roster.standbys.backup_bytes()
