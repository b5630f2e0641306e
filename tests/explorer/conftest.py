"""Makes the models beside the tests, and the benchmarks, importable."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for _path in (HERE, HERE.parents[1]):
    if str(_path) not in sys.path:
        sys.path.insert(0, str(_path))
