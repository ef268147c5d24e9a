"""Springtide: elastic stream processing on Apache Spark, in Python."""

from springtide.app import App
from springtide.dataflow import rates, sinks, sources
from springtide.errors import SpringtideError
from springtide.state import aggregates as agg
from springtide.state.logic import Groups
from springtide.state.reduce import Reduced

__all__ = ["App", "Groups", "Reduced", "SpringtideError", "agg", "rates", "sinks", "sources"]
__version__ = "0.1.0"
