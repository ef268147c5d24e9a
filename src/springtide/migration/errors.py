"""Why a change of the plan is refused. The app goes on as it was."""

from springtide.errors import SpringtideError


class Refused(SpringtideError):
    """A request that can't be met; the message says what was expected, what came and what to do."""


class Unknown(Refused):
    """It names something that the app does not have."""


class Busy(Refused):
    """A migration is under way, and there is one at a time."""
