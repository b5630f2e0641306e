"""Compiles kernels; their machine code is kept in the folder of their sources (kernel_place.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba import njit

from dra_spec.explorer.kernel_place import place

_CONFIG: Any = numba_config  # its attributes are made when it is loaded


@contextmanager
def _cache_at(folder: Path) -> Iterator[None]:
    """Numba asks for its folder when a function is decorated."""
    before = _CONFIG.CACHE_DIR
    _CONFIG.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        _CONFIG.CACHE_DIR = before


def compiled(fn: Any) -> Any:
    """Decorator: compiles a function, without the lock of the interpreter; its machine code is kept on disk, if there is a place for it."""
    folder = place()
    if folder is None:
        return njit(nogil=True)(fn)
    with _cache_at(folder):
        return njit(cache=True, nogil=True)(fn)
