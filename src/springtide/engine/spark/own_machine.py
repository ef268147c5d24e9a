"""Spark on this machine alone: within reach from here only, for who knows its secret, with files for its owner only."""

import re
import secrets
from pathlib import Path

from springtide.confidential import remember
from springtide.scratch import make_scratch

LOOPBACK = "127.0.0.1"
ADDRESS = "SPARK_LOCAL_IP"
ENVIRONMENT = {ADDRESS: LOOPBACK, "SPARK_LOCAL_HOSTNAME": LOOPBACK}
"""Of the JVM and the executors that it starts: Spark's masters, workers and pages have no setting for it."""
SECRET = "spark.authenticate.secret"
LONGEST_FOR_SOCKETS = 60
"""Characters of a directory's path: with the name that Spark adds, the path of a socket may have 107."""
SHORT = Path("/tmp")


def on_this_machine(master: str) -> bool:
    """Whether a master's executors run here."""
    return re.match(r"local(-cluster)?(\[|$)", master) is not None


def closed_settings(directory: Path) -> dict[str, str]:
    """Settings for a session on this machine, with a new secret; Spark keeps what is temporary in `directory`."""
    # Whoever may open these sockets can talk to Python workers.
    sockets = directory if len(str(directory)) <= LONGEST_FOR_SOCKETS else make_scratch("sockets", SHORT)
    secret = secrets.token_hex(32)
    remember(secret)
    return {
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.authenticate": "true",
        SECRET: secret,
        # Rows of shuffles and caches, which Spark would leave for all to read.
        "spark.local.dir": str(directory),
        "spark.python.unix.domain.socket.dir": str(sockets),
    }
