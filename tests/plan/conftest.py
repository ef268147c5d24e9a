"""The modules beside the tests made importable: importlib mode leaves sys.path alone."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
