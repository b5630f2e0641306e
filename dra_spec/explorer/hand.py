"""What a worker has for itself when several look at states at the same time: scratch space, lists, statistics, memory of chunks.

All else that kernels get they only read then: rows, trees, the forest, the rename table. Only the flags of states are written, each by the
worker that has the state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k
from dra_spec.explorer.native import Bound

if TYPE_CHECKING:
    from dra_spec.explorer.machine import Machine

_APART = 128  # bytes: arrays of two workers begin so far apart, at multiples, so that no line of a cache holds parts of both
_OWN = ("values", "written", "stamps", "retries", "ready", "requests", "request_after", "asked")
_STATISTICS = ("taken", "enabled", "beyond", "saw", "step_bad")


def apart(shape: int | tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Zeros that share no line of a cache with another array."""
    size, item = int(np.prod(shape)), np.dtype(kind).itemsize
    room = np.zeros(size + 2 * _APART // item, kind)
    first = -room.ctypes.data % _APART // item
    return room[first : first + size].reshape(shape)


def longer(effects: k.Effects, outcomes: int) -> k.Effects:
    """The same memory, with room for more outcomes; nothing is known of the new ones."""
    need = apart((outcomes, *effects.need.shape[1:]), effects.need.dtype)
    need[: len(effects.need)] = effects.need
    return effects._replace(need=need)


@attrs.frozen
class Piece:
    """What a worker did with a piece of a block: where its parts of the worker's lists begin and end."""

    number: int
    successors: tuple[int, int]
    retries: tuple[int, int]
    requests: tuple[int, int]
    names: tuple[int, int]


class Hand:
    """The private part of one worker. `fit` comes before a kernel is called."""

    def __init__(self, machine: Machine) -> None:
        self.ctl = apart(k.COUNTERS, np.int64)
        self.expand, self.judge = Bound("kernels", "expand"), Bound("kernels_judge", "judge")
        self.pieces: list[Piece] = []
        self.first_bad: NDArray[np.int64] = np.full_like(machine.first_bad, -1)
        self._names = np.zeros_like(machine.version_arrays().requests)
        self._rooms: dict[str, NDArray[np.int32]] = {}
        self._shared: k.Work | None = None
        self._part: k.Pile | None = None
        self._merged: k.Merged | None = None
        self._dead: Any = None
        self._symmetry: Any = None
        self._effects: k.Effects | None = None
        self.effects: k.Effects = machine.effects
        self.work: k.Work = machine.work

    def fit(self, machine: Machine, part: k.Pile) -> None:
        """Makes private what a kernel writes. `part`: this worker's part of the pile."""
        if machine.work is not self._shared or part is not self._part:
            own = {}
            for name in (*_OWN, *_STATISTICS):
                wanted, mine = getattr(machine.work, name), getattr(self.work, name)
                new = self._shared is None or mine.shape != wanted.shape
                own[name] = apart(wanted.shape, wanted.dtype) if new else mine
            self.work = machine.work._replace(**own, rows=part.rows, kept=part.kept, source=part.source, via=part.via, hashes=part.hashes)
            self.work.step_bad[:] = -1
            self._shared, self._part = machine.work, part
        if machine.merged is not self._merged:
            self._merged = machine.merged
            pool = apart(2, np.int64)
            pool[:] = machine.merged.pool[1]
            entries, memo = self._room("entries", machine.merged.entries), self._room("memo", machine.merged.memo)
            entries[: 2 * pool[1]] = machine.merged.entries[: 2 * pool[1]]
            memo[:] = 0
            self.merged = machine.merged._replace(memo=memo, stack=self._room("stack", machine.merged.stack), entries=entries, pool=pool)
        if machine.effects is not self._effects:
            if self._effects is not None and machine.effects.memory is self._effects.memory:
                self.effects = longer(self.effects, len(machine.effects.need))
            else:
                self.effects = k.Effects(*(apart(array.shape, array.dtype) for array in machine.effects))
            self._effects = machine.effects
        dead, symmetry = machine.dead_arrays(), machine.symmetry_arrays()
        if dead is not self._dead:
            self._dead = dead
            self.dead = dead._replace(done=apart(dead.done.shape, np.int64), fault=apart(dead.fault.shape, np.int64))
        if symmetry is not self._symmetry:
            self._symmetry = symmetry
            self.symmetry = symmetry._replace(image=apart(symmetry.image.shape, np.int32))
        self.versions = machine.version_arrays()._replace(requests=self._names)
        self.ctl[k.EXPAND_ALL], self.ctl[k.WIDEST], self.ctl[k.APART] = machine.ctl[k.EXPAND_ALL], machine.ctl[k.WIDEST], 1

    def _room(self, name: str, like: NDArray[np.int32]) -> NDArray[np.int32]:
        """An array of the same length, of memory that was used before if there is enough."""
        if len(self._rooms.get(name, ())) < len(like):
            self._rooms[name] = apart(2 * len(like), np.int32)
        return self._rooms[name][: len(like)]

    def begin(self) -> None:
        """Empties the lists, before a block."""
        self.pieces = []
        self.ctl[[k.BUFFERED, k.RETRIES, k.REQUESTS, k.RENAMES]] = 0
        self.work.asked[:] = 0

    def take(self, number: int, begin: int, end: int) -> None:
        """Gives a range of states to the next call, as a piece of the block."""
        self._at = self._places()
        self._number = number
        self.ctl[k.POS], self.ctl[k.END] = begin, end

    def took(self) -> None:
        """That call has ended."""
        self.pieces.append(Piece(self._number, *zip(self._at, self._places(), strict=True)))

    def _places(self) -> tuple[int, int, int, int]:
        ctl = self.ctl
        return int(ctl[k.BUFFERED]), int(ctl[k.RETRIES]), int(ctl[k.REQUESTS]), int(ctl[k.RENAMES])

    def add_statistics(self, work: k.Work) -> None:
        """Adds what was counted to the statistics of the search, but for `step_bad`."""
        mine = self.work
        work.taken[:] += mine.taken
        work.enabled[:] |= mine.enabled
        work.beyond[:] |= mine.beyond
        work.saw[:] |= mine.saw

    def forget_statistics(self) -> None:
        """What was counted does not count any more."""
        for name in ("taken", "enabled", "beyond", "saw"):
            getattr(self.work, name)[:] = 0
        self.work.step_bad[:] = -1
