"""Makes the doubles importable: tests are imported by path, so their folder is put first."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
