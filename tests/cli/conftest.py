"""Makes the fake app of the control room's tests importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "control"))
