"""Arrays that grow in place: address space is reserved, memory is used when a page is touched."""

from __future__ import annotations

import mmap
import os
import platform
import sys
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SMALL = 1 << 22  # bytes below which large pages would cost more than they give


def _physical() -> int:
    """Bytes of memory that the machine has; 0: not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def _without_commitment() -> int | None:
    """The flag that asks for address space without memory behind it; None where it is not known. Python has it from 3.13 on."""
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64", "riscv64", "s390x"):
        return 0x4000
    return 0x40 if sys.platform == "darwin" else getattr(mmap, "MAP_NORESERVE", None)


class Growing:
    """An array whose first dimension grows; what is new is zero.

    As long as it stays below the machine's memory it does not move, so that growing costs nothing and no two copies exist at a time.
    Where address space cannot be reserved, it is copied as it grows. `times`: so many times the machine's memory is reserved, for an
    array of which only a part is in use at a time (`forget`).
    """

    def __init__(self, length: int, rest: tuple[int, ...], kind: Any, times: int = 1) -> None:
        self._row = prod(rest) * np.dtype(kind).itemsize
        self._rest, self._kind = rest, np.dtype(kind)
        self._forgotten = 0  # bytes
        self._place: mmap.mmap | None = self._reserve(times) if length else None
        self.data: NDArray[Any] = self._view(length) if self._fits(length) else np.zeros((length, *rest), kind)

    def _reserve(self, times: int) -> mmap.mmap | None:
        flags = _without_commitment()
        if flags is None or not _physical():
            return None
        try:
            place = mmap.mmap(-1, times * _physical(), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
        except (OSError, OverflowError, ValueError):
            return None
        return place

    def _fits(self, length: int) -> bool:
        return self._place is not None and length * self._row <= len(self._place)

    def _view(self, length: int) -> NDArray[Any]:
        assert self._place is not None
        if length * self._row > _SMALL and hasattr(mmap, "MADV_HUGEPAGE"):
            self._place.madvise(mmap.MADV_HUGEPAGE)
        flat = np.frombuffer(self._place, self._kind, length * prod(self._rest))
        return flat.reshape(length, *self._rest)

    def next_length(self) -> int:
        """A good length to grow to: small steps where they cost nothing."""
        small = len(self.data) * 17 // 16
        return small if self._fits(small) else len(self.data) * 3 // 2

    def grow(self, length: int) -> None:
        """Makes it longer."""
        if self._fits(length):
            self.data = self._view(length)
            return
        longer = np.zeros((length, *self._rest), self._kind)
        longer[: len(self.data)] = self.data
        self.data, self._place = longer, None

    def forget(self, length: int) -> None:
        """Gives back the memory of the first `length` entries: nobody may read them again. Where that cannot be done, they stay."""
        end = length * self._row // mmap.PAGESIZE * mmap.PAGESIZE
        if self._place is not None and end > self._forgotten and hasattr(mmap, "MADV_DONTNEED"):
            self._place.madvise(mmap.MADV_DONTNEED, self._forgotten, end - self._forgotten)
            self._forgotten = end
