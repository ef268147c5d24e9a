"""Springtide: elastic stream processing on Apache Spark, in Python."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from springtide.app import App
    from springtide.connectors import sinks, sources
    from springtide.connectors.generator import rates
    from springtide.dataflow.ttl import Ttl
    from springtide.errors import SpringtideError
    from springtide.state import aggregates as agg
    from springtide.state.clock import PROCESSING_TIME
    from springtide.state.logic import Groups
    from springtide.state.reduce import Reduced

__all__ = ["PROCESSING_TIME", "App", "Groups", "Reduced", "SpringtideError", "Ttl", "agg", "rates", "sinks", "sources"]
__version__ = "0.2.0"

_MODULES = {
    "agg": "state.aggregates",
    "rates": "connectors.generator.rates",
    "sinks": "connectors.sinks",
    "sources": "connectors.sources",
}
_NAMES = {
    "App": "app",
    "Groups": "state.logic",
    "PROCESSING_TIME": "state.clock",
    "Reduced": "state.reduce",
    "SpringtideError": "errors",
    "Ttl": "dataflow.ttl",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them take a second, and the command line is there at once."""
    if name in _MODULES:
        found: Any = import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _NAMES:
        found = getattr(import_module(f"{__name__}.{_NAMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
