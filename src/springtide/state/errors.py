"""What can go wrong with keys, state and the functions that users give."""

from springtide.errors import BadType, BadValue, SpringtideError


class UnsupportedKey(BadType):
    """A key column of a type whose equality is not defined here."""

    def __init__(self, column: str, kind: str) -> None:
        super().__init__(column, kind)
        self.column, self.kind = column, kind

    def __str__(self) -> str:
        return (
            f"column {self.column!r} has type {self.kind} and can't be a key: "
            "use booleans, numbers, strings, binary, dates or timestamps"
        )


class NumericOverflow(SpringtideError):
    """A result of one key that does not fit its type; a wrapped one would be wrong without a word."""

    def __init__(self, result: str, column: str, key: str, room: str) -> None:
        super().__init__(result, column, key, room)
        self.result, self.column, self.key, self.room = result, column, key, room

    def __str__(self) -> str:
        return (
            f"{self.result!r} of {self.column}: expected a result that fits {self.room}, got more for key {self.key}. "
            "Cast the column to DOUBLE before this step, or use a finer key or a window"
        )


class BadUpdate(BadValue):
    """A reducer returned something that does not fit what it declared."""

    def __init__(self, what: str, expected: str, got: str) -> None:
        super().__init__(what, expected, got)
        self.what, self.expected, self.got = what, expected, got

    def __str__(self) -> str:
        return f"the reducer's {self.what}: expected {self.expected}, got {self.got}"
