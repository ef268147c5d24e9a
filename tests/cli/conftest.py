"""Makes the modules beside these tests, and the fake app of the control room's, importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "control")]
