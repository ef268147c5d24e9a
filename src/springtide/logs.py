"""Logs: one logger a room, quiet unless somebody asks."""

import logging
import os
from collections.abc import Mapping

from springtide.confidential import HideInLogs
from springtide.errors import BadValue

VARIABLE = "SPRINGTIDE_LOG"
"""The environment variable with a level, or `room=level` pairs: `info`, or `engine=debug,control=info`."""

ROOT = "springtide"
LEVELS = ("debug", "info", "warning", "error", "off")
_FORM = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

logging.getLogger(ROOT).addHandler(logging.NullHandler())


def room_logger(module: str) -> logging.Logger:
    """The logger of a module's room, by its `__name__`: `springtide.engine` for everything in `engine/`."""
    logger = logging.getLogger(".".join(module.split(".")[:2]))
    if not any(isinstance(found, HideInLogs) for found in logger.filters):
        logger.addFilter(HideInLogs())
    return logger


def configure(level: str | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Print logs on stderr, as `SPRINGTIDE_LOG` says; `level`, if given, is that of all rooms it does not name.

    For a process that is Springtide's own: without either nothing is printed, whatever handlers libraries set up.
    """
    logging.getLogger(ROOT).propagate = False
    # Else a library that logs to the root, as py4j does when its JVM ends, prints tracebacks.
    logging.getLogger().addHandler(logging.NullHandler())
    wanted = {ROOT: level} if level else {}
    for part in filter(None, environment.get(VARIABLE, "").split(",")):
        room, named, found = part.rpartition("=")
        if found.lower() not in LEVELS or (named and not room):
            raise BadValue(f"{VARIABLE}: expected one of {', '.join(LEVELS)}, or room=level pairs, got {part!r}")
        wanted[f"{ROOT}.{room}" if room else ROOT] = found.lower()
    if not wanted:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORM))
    logging.getLogger(ROOT).addHandler(handler)
    for name, chosen in wanted.items():
        logging.getLogger(name).setLevel(logging.CRITICAL + 1 if chosen == "off" else chosen.upper())
