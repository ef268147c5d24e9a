"""Makes `state_kit` and the oracle of joins importable: with importlib mode pytest leaves sys.path alone."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent / "chaos")]
