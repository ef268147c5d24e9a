"""How reasons write numbers."""


def count(value: float) -> str:
    """Rows or rates: 7 600; small ones with a decimal: 0.5."""
    if 0 < abs(value) < 10 and value != round(value):
        return f"{value:.1f}"
    return f"{value:,.0f}".replace(",", " ")


def percent(share: float) -> str:
    """A share of 1: 92 %."""
    return f"{100 * share:.0f} %"


def plural(number: float, noun: str) -> str:
    """1 worker, 2 workers."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"
