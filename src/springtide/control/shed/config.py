"""How the controller of the economy works."""

from dataclasses import dataclass, fields

from springtide.migration.errors import Refused


@dataclass(frozen=True)
class SheddingConfig:
    """Times are seconds."""

    cycle_s: float = 5.0
    """From one decision to the next; a load that jumps is met sooner."""
    look_s: float = 1.0
    """From one look for such a jump to the next."""
    epoch_s: float = 1.5
    """How long an epoch is to take: what does not fit is shed. Longer if much of it is not for rows."""
    longest_s: float = 4.0
    """How long it may take when a load jumps, or to hold the minimum accuracies, by the read limits."""
    utilisation: float = 0.85
    """The share of the cores that is planned for."""
    catch_up_cycles: float = 2.0
    """In how many cycles rows that wait are to be worked off, beside those that come."""
    rise: float = 0.35
    """The most that an accuracy rises in one cycle; it falls at once."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise Refused(f"{each.name}: expected more than 0, got {getattr(self, each.name)}")
