"""Springtide: elastic stream processing on Apache Spark, in Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from springtide.app import App
    from springtide.connectors import sinks, sources
    from springtide.connectors.generator import rates
    from springtide.errors import SpringtideError
    from springtide.state import aggregates as agg
    from springtide.state.logic import Groups
    from springtide.state.reduce import Reduced

__all__ = ["App", "Groups", "Reduced", "SpringtideError", "agg", "rates", "sinks", "sources"]
__version__ = "0.2.0"

_MODULES = {
    "agg": "state.aggregates",
    "rates": "connectors.generator.rates",
    "sinks": "connectors.sinks",
    "sources": "connectors.sources",
}
_CLASSES = {"App": "app", "Groups": "state.logic", "Reduced": "state.reduce", "SpringtideError": "errors"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them take a second, and the command line is there at once."""
    if name in _MODULES:
        found: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _CLASSES:
        found = getattr(import_module(f"{__name__}.{_CLASSES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
