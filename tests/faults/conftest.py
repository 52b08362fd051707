"""The fault tests' own modules are imported by name; test modules are imported by path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
