"""The chaos app run by the command line itself: what it prints, and the code it ends with, are what a user gets.

Run as a script, it takes the place of `cluster_app` in a cluster of the kit; it is not told when to stop.
"""

import argparse
import sys
from pathlib import Path

from cluster_app import ENDLESS, SETTINGS

from springtide.cli.entry import main

APP = """
from pathlib import Path

import chaos_app

app = chaos_app.build(Path({root!r}), {epochs})
"""


def arguments(root: Path, epochs: int, *more: str) -> list[str]:
    """What to write after `springtide` to run the app over a number of epochs, with its places below a directory."""
    file = root / "command_chaos.py"
    file.write_text(APP.format(root=str(root), epochs=epochs))
    places = (f"--checkpoint={root / 'checkpoint'}", f"--local={root / 'local'}")
    settings = (f"--conf={key}={value}" for key, value in SETTINGS.items())
    return ["run", str(file), "--quiet", *places, *settings, *more]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=Path)
    parser.add_argument("--workers", type=int, required=True)
    options, _ = parser.parse_known_args()
    sys.argv = ["springtide", *arguments(options.root, ENDLESS, f"--workers={options.workers}")]
    main()
