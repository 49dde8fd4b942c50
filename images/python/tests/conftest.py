"""The harness's own tests: its modules here, whole containers under `container/`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
