"""What can go wrong between the engine and its durable store."""

from springtide.errors import SpringtideError

REPAIR = "Free space or repair the store"


class StoreFailed(SpringtideError, OSError):
    """A store refused or lost a call; whoever made it knows what that means for the epoch."""

    def __init__(self, action: str, path: str, reason: str, *, final: bool = False, remedy: str = REPAIR) -> None:
        super().__init__(action, path, reason)
        self.action, self.path, self.reason, self.remedy = action, path, reason, remedy
        self.final = final
        """Waiting does not mend it."""

    def __str__(self) -> str:
        return (
            f"the store could not {self.action} {self.path!r}: {self.reason.rstrip('.')}. "
            f"{self.remedy}, and start the app again"
        )


class LocalDiskFailed(SpringtideError, OSError):
    """A worker could not write to its own directory: the disk is full, or may not be written to."""

    def __init__(self, directory: str, host: str, reason: str) -> None:
        super().__init__(directory, host, reason)
        self.directory, self.host, self.reason = directory, host, reason

    def __str__(self) -> str:
        return (
            f"a worker could not write to its directory {self.directory!r} on host {self.host}: {self.reason}. "
            "Free space there, or give local= a place with more, and start the app again: it goes on where it was"
        )


class AlreadyThere(SpringtideError, FileExistsError):
    """Put-if-absent found something in the place."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path!r} exists already"


class BlockCorrupt(SpringtideError):
    """No copy of a block has the bytes its manifest promises."""

    def __init__(self, block: str, operator: str, slices: str, epoch: int, tried: tuple[str, ...]) -> None:
        super().__init__(block, operator, slices, epoch, tried)
        self.block, self.operator, self.slices, self.epoch, self.tried = block, operator, slices, epoch, tried

    def __str__(self) -> str:
        return (
            f"operator {self.operator!r}, slices {self.slices}: block {self.block!r} of epoch {self.epoch} is "
            f"damaged or missing in every copy ({'; '.join(self.tried)}). Restore it from a backup of the "
            "checkpoint, or start with a new checkpoint"
        )


class Unsound(SpringtideError):
    """A worker's own copy of a block is missing, or has other bytes than its manifest promises."""

    def __init__(self, block: str, reason: str) -> None:
        super().__init__(block, reason)
        self.block, self.reason = block, reason

    def __str__(self) -> str:
        return f"block {self.block!r}: {self.reason}; another copy has to do"


class ManifestConflict(SpringtideError):
    """Another driver committed this epoch, with other content."""

    def __init__(self, epoch: int, ours: str, theirs: str) -> None:
        super().__init__(epoch, ours, theirs)
        self.epoch, self.ours, self.theirs = epoch, ours, theirs

    def __str__(self) -> str:
        return (
            f"epoch {self.epoch} is committed already by another driver (manifest {self.theirs[:12]}, ours would "
            f"be {self.ours[:12]}): two drivers run on one checkpoint; stop one of them"
        )


class NewerFormat(SpringtideError):
    """The checkpoint was written by a later release."""

    def __init__(self, what: str, found: object, known: int) -> None:
        super().__init__(what, found, known)
        self.what, self.found, self.known = what, found, known

    def __str__(self) -> str:
        return (
            f"{self.what} has format {self.found}, and this release reads up to {self.known}: "
            "install the release that wrote it, or start with a new checkpoint"
        )


class LineageBroken(SpringtideError):
    """Spark asks for an epoch that does not follow the last committed one."""

    def __init__(self, wanted: int, head: int) -> None:
        super().__init__(wanted, head)
        self.wanted, self.head = wanted, head

    def __str__(self) -> str:
        return (
            f"Spark asks for epoch {self.wanted}, but the last committed epoch is {self.head}: the checkpoint's "
            "'spark' directory and its manifests do not belong together; restore both from the same backup"
        )


class TakenOver(SpringtideError):
    """A later driver has claimed the checkpoint: what this one does counts no more."""

    def __init__(self, generation: int, by: str = "") -> None:
        super().__init__(generation, by)
        self.generation, self.by = generation, by

    def __str__(self) -> str:
        return (
            f"this driver (generation {self.generation}) was taken over by {self.by or 'another driver'}, as it was "
            "paused or cut off from its checkpoint for a while. What it has committed is safe, and the other goes on "
            "from it: nothing is to be done. If no other driver runs, the checkpoint was restored from a backup that "
            "is older than its sinks: restore a newer one"
        )


class CheckpointInUse(SpringtideError):
    """A living driver holds this checkpoint."""

    def __init__(self, checkpoint: str, holder: str) -> None:
        super().__init__(checkpoint, holder)
        self.checkpoint, self.holder = checkpoint, holder

    def __str__(self) -> str:
        return (
            f"checkpoint {self.checkpoint!r} is in use by {self.holder}: stop that driver first, "
            "or give this one another --checkpoint"
        )
