"""Makes `extending_kit` importable: with importlib mode pytest leaves sys.path alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
