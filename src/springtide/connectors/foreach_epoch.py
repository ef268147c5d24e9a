"""A user's function as a sink."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from springtide.dataflow.sink_spec import EpochOutput, SinkSpec
from springtide.errors import BadType


class NoSinkFunction(BadType):
    """A function that cannot be called with an epoch."""

    def __init__(self, got: str) -> None:
        super().__init__(got)
        self.got = got

    def __str__(self) -> str:
        return f"foreach_epoch: expected a function of (df, epoch) or (df, epoch, generation), got {self.got}"


@dataclass(frozen=True)
class ForeachEpoch(SinkSpec):
    """A user's function of (DataFrame, epoch) or (DataFrame, epoch, generation); it may see the last epoch again."""

    function: Callable[..., Any]
    fenced: bool = field(init=False, default=False)
    """The function wants the generation, too."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fenced", _wants_generation(self.function))

    def publish(self, output: EpochOutput) -> None:
        if self.fenced:
            self.function(output.dataframe(), output.epoch, output.generation)
        else:
            self.function(output.dataframe(), output.epoch)


def _wants_generation(function: Callable[..., Any]) -> bool:
    """Whether a function takes a third argument; NoSinkFunction if it takes neither two nor three.

    A third one with a default is left alone, unless it is called generation: people bind values that way.
    """
    if not callable(function):
        raise NoSinkFunction(repr(function))
    try:
        signature = inspect.signature(function)
    except ValueError:
        return False  # Built in, and does not say what it takes.
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    third = [p for p in signature.parameters.values() if p.kind in positional][2:3]
    wanted = any(p.default is inspect.Parameter.empty or p.name == "generation" for p in third)
    try:
        signature.bind(*range(3 if wanted else 2))
    except TypeError as error:
        raise NoSinkFunction(f"{getattr(function, '__name__', function)}{signature}: {error}") from error
    return wanted


def foreach_epoch(function: Callable[..., Any]) -> ForeachEpoch:
    """Call `function(df, epoch)` or `function(df, epoch, generation)` with each epoch's DataFrame and number.

    Make it idempotent by the number: after a crash it may see the last epoch again. The generation grows with every
    start of the app. A driver that was paused and taken over may come late, with a smaller one: keep the greatest
    generation that was seen beside what you write, in the same transaction, and refuse smaller ones.
    """
    return ForeachEpoch(function)
