"""What can be wrong with a condition."""

from springtide.errors import BadValue, SpringtideError

ALLOWED = (
    "A condition may have columns, numbers, strings, TRUE, FALSE, NULL, TIMESTAMP '…', DATE '…', INTERVAL '…', "
    "comparisons, AND, OR, NOT, IS [NOT] NULL, IN, BETWEEN, LIKE, + - * / %, COALESCE, LOWER, UPPER and CASE"
)

DOUBLES = "A number with an exponent, as in `price * 1e0`, makes doubles of decimals that have too many digits"


class BadCondition(BadValue):
    """A condition that can't be read, or that does not fit the columns there are."""

    def __init__(self, owner: str, text: str, expected: str, got: str, hint: str = "") -> None:
        super().__init__(owner, text, expected, got, hint)
        self.owner, self.text, self.expected, self.got, self.hint = owner, text, expected, got, hint

    def __str__(self) -> str:
        told = f"{self.owner} where={self.text!r}: expected {self.expected}, got {self.got}"
        return f"{told}. {self.hint}" if self.hint else told


class ConditionFailed(SpringtideError):
    """A condition that could not be evaluated for some row."""

    def __init__(self, owner: str, text: str, reason: str) -> None:
        super().__init__(owner, text, reason)
        self.owner, self.text, self.reason = owner, text, reason

    def __str__(self) -> str:
        return (
            f"{self.owner} where={self.text!r}: expected numbers that fit 64 bits, got {self.reason}. "
            "Write a number with a decimal point, as in `price * 1.0`, where results grow that large"
        )
