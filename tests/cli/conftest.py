"""Makes the modules beside these tests, the fake app of the control room and the kit of the blocks importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "control"), str(HERE.parent / "blocks")]
