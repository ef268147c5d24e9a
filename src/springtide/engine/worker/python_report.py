"""What a Python has that a worker needs.

Runs in any Python 3, also in one that has no Springtide: it takes the standard library alone, keeps to old syntax, and
goes there as source or as a function pickled by value.
"""

import importlib.util
import json
import platform
import re
import sys

NEEDED = ("springtide", "pyarrow", "numpy", "pandas", "fsspec")
"""Modules that a worker imports; `pyspark` comes with Spark itself."""


def report(_: object = None) -> "dict[str, object]":
    """The executable, its version, its host, the modules it lacks, and its Springtide; nothing is imported for it."""
    spec = importlib.util.find_spec("springtide")
    version = ""
    if spec is not None and spec.origin is not None:
        with open(spec.origin) as source:
            named = re.search('^__version__ = "(.*)"', source.read(), re.MULTILINE)
        version = named.group(1) if named else ""
    return {
        "executable": sys.executable,
        "version": platform.python_version(),
        "host": platform.node(),
        "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
        "springtide": version,
    }


if __name__ == "__main__":
    print(json.dumps(report()))
