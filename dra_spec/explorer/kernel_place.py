"""Where the machine code of the kernels is kept between runs.

Numba looks at the file of a function to see whether its machine code on disk is still good, but not at the files of the functions that it
calls. So the folder is named by a hash of all kernel sources: a change in any of them leads to an empty folder, and a kernel may be spread
over several files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_KEPT = 14 * 86_400  # seconds for which the code of other versions of the kernels is kept
_MARK = "in-use"  # its time says when a folder was used last


def sources(folder: Path = _HERE) -> list[Path]:
    """The files whose text decides what machine code comes out."""
    return [folder / "arrays.py", *sorted(folder.glob("kernels*.py"))]


def digest(folder: Path = _HERE) -> str:
    """A hash of the kernel sources, as a name of a folder."""
    h = hashlib.sha256()
    for path in sources(folder):
        text = path.read_bytes()
        h.update(f"{path.name} {len(text)}\n".encode() + text)
    return h.hexdigest()[:16]


def _user_cache() -> Path:
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    return Path.home() / ".cache"


def candidates() -> Iterator[Path]:
    """Folders for machine code, the best first: where the user wants it (NUMBA_CACHE_DIR), the user's cache, beside the sources."""
    if wanted := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(wanted)
    with suppress(RuntimeError):  # a user without a home
        yield _user_cache() / "dra-spec"
    yield _HERE / "__pycache__"


@cache
def place() -> Path | None:
    """The folder for the machine code of these sources, and what else is slow to make anew; None if there is none that can be written."""
    try:
        name = f"kernels-{digest()}"
    except OSError:  # the sources are not files
        return None
    for folder in candidates():
        chosen = folder / name
        try:
            chosen.mkdir(parents=True, exist_ok=True)
            (chosen / _MARK).touch()
            tempfile.TemporaryFile(dir=chosen).close()
        except OSError:
            continue
        _tidy(folder, chosen)
        return chosen
    return None


def _tidy(folder: Path, chosen: Path) -> None:
    """Removes the code of versions of the kernels that nobody has used for a while."""
    long_ago = time.time() - _KEPT
    for other in folder.glob("kernels-*"):
        with suppress(OSError):
            if other != chosen and (other / _MARK).stat().st_mtime < long_ago:
                shutil.rmtree(other, ignore_errors=True)
