"""Which bits of a packed row hold which slot, and which slots sit side by side in a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dra_spec.explorer import arrays as k

_WORD = 64  # bits
CHUNK_BITS = 12  # of slots that are to sit side by side
_MOST_BITS = 14  # of a chunk, with the bits that are left over; what is remembered per chunk is a table of that many bits


@attrs.frozen
class Chunk:
    """A field of a row that holds some slots."""

    word: int
    shift: int
    bits: int


class Layout:
    """No slot lies across two words; bits left over go to the domains that are most likely to grow.

    `groups`: all slots, those together that should sit side by side; without it the slots in their order. `growing`: per slot whether its
    domain grew lately.
    """

    def __init__(
        self, sizes: NDArray[np.int64], groups: Sequence[Sequence[int]] | None = None, growing: NDArray[np.bool_] | None = None
    ) -> None:
        bits = [int(size - 1).bit_length() if size > 0 else 0 for size in sizes]
        groups = _in_order(bits) if groups is None else groups
        if len(_place(_singly(groups), bits)) < len(_place(groups, bits)):
            chunks, groups = groups, _singly(groups)
        else:
            chunks = groups
        likely = _likely(bits, sizes, np.zeros(len(bits), np.bool_) if growing is None else growing)
        bits, words = _widened(groups, bits, likely)
        self.words = len(words)
        word, shift, chunk_of = (np.zeros(len(bits), np.int64) for _ in range(3))
        group_of = {slot: g for g, group in enumerate(chunks) for slot in group}
        self.chunks: list[Chunk] = []
        for w, slots in enumerate(words):
            _spread(slots, bits, likely)
            position = begin = 0
            for at, slot in enumerate(slots):
                new = at == 0 or position + bits[slot] - begin > _MOST_BITS
                if not new and group_of[slot] != group_of[slots[at - 1]]:  # small groups share a chunk
                    members = [other for other in slots[at:] if group_of[other] == group_of[slot]]
                    new = position + _width(members, bits) - begin > CHUNK_BITS
                if new:
                    begin = position
                    self.chunks.append(Chunk(w, begin % _WORD, 0))
                word[slot], shift[slot], chunk_of[slot] = w, position, len(self.chunks) - 1
                position += bits[slot]
                self.chunks[-1] = attrs.evolve(self.chunks[-1], bits=position - begin)
                if bits[slot] > _MOST_BITS:
                    self.chunks.pop()
                    chunk_of[slot] = -1
        self.limits = np.array([1 << b for b in bits], np.int64)  # how large each domain may become
        masks = np.array([(1 << b) - 1 for b in bits], np.uint64)
        self.arrays = k.Layout(word, (shift % _WORD).astype(np.uint64), masks, chunk_of)

    def fits(self, sizes: NDArray[np.int64]) -> bool:
        """Whether domains of these sizes fit into the fields."""
        return bool(np.all(sizes <= self.limits))


def moves(old: Layout, new: Layout) -> k.Moves:
    """How a row in one layout becomes one in another: fields that stay side by side move together."""
    found: dict[tuple[int, int, int], int] = {}
    (word, shift, mask, _), (to_word, to_shift, _, _) = ([array.tolist() for array in layout.arrays] for layout in (old, new))
    for slot, bits in enumerate(mask):
        move = to_word[slot], word[slot], (to_shift[slot] - shift[slot]) % _WORD
        found[move] = found.get(move, 0) | bits << shift[slot]
    there = sorted(move for move, bits in found.items() if bits)
    first = np.searchsorted([to for to, _, _ in there], np.arange(new.words + 1))
    kinds = (np.int64, np.uint64, np.uint64)
    columns = [at for _, at, _ in there], [found[move] for move in there], [turn for _, _, turn in there]
    return k.Moves(first.astype(np.int64), *(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def _in_order(bits: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = [[]]
    used = 0
    for slot, width in enumerate(bits):
        if used + width > CHUNK_BITS and groups[-1]:
            groups.append([])
            used = 0
        groups[-1].append(slot)
        used += width
    return groups


def _place(groups: Sequence[Sequence[int]], bits: Sequence[int]) -> list[list[int]]:
    """The slots of each word; each group in the first word that has room for it."""
    words: list[list[int]] = [[]]
    free = [_WORD]
    for group in _pieces(groups, bits):
        width = _width(group, bits)
        at = next((w for w, left in enumerate(free) if left >= width), None)
        if at is None:
            at = len(free)
            free.append(_WORD)
            words.append([])
        free[at] -= width
        words[at].extend(group)
    return words


def _width(group: Sequence[int], bits: Sequence[int]) -> int:
    return sum(bits[slot] for slot in group)


def _pieces(groups: Sequence[Sequence[int]], bits: Sequence[int]) -> Iterator[Sequence[int]]:
    """The groups; those wider than a word slot by slot."""
    for group in groups:
        if _width(group, bits) <= _WORD:
            yield group
        else:
            yield from ([slot] for slot in group)


def _singly(groups: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[slot] for group in groups for slot in group]


def _likely(bits: Sequence[int], sizes: NDArray[np.int64], growing: NDArray[np.bool_]) -> list[int]:
    """The slots, those first whose domains are the most likely to become too large: of more than two values, grown lately, full."""
    grown = [slot for slot in range(len(bits)) if sizes[slot] > 1]
    return sorted(grown, key=lambda slot: (sizes[slot] <= 2, not growing[slot], -float(sizes[slot]) / (1 << bits[slot])))


def _widened(groups: Sequence[Sequence[int]], bits: list[int], likely: Sequence[int]) -> tuple[list[int], list[list[int]]]:
    """One more bit for as many of the likely slots as that does not take more words; and the slots of each word."""
    words = _place(groups, bits)
    best, low, high = (bits, words), 0, len(likely)
    while low < high:
        middle = (low + high + 1) // 2
        wider = list(bits)
        for slot in likely[:middle]:
            wider[slot] += 1
        placed = _place(groups, wider)
        if len(placed) <= len(words):
            best, low = (wider, placed), middle
        else:
            high = middle - 1
    return best


def _spread(slots: Sequence[int], bits: list[int], likely: Sequence[int]) -> None:
    """Gives the bits that are left over in a word to the slots that are the most likely to need them."""
    left = _WORD - _width(slots, bits)
    for slot in [slot for slot in likely if slot in slots][:left]:
        bits[slot] += 1


def cluster(pull: NDArray[np.float64], bits: Sequence[int]) -> list[list[int]]:
    """Groups of slots of up to CHUNK_BITS bits, greedily: those that pull each other most come together.

    `pull` is symmetric; slots that nothing pulls come last, in their order.
    """
    free = [slot for slot in range(len(bits)) if bits[slot] and pull[slot].any()]
    rest = [slot for slot in range(len(bits)) if slot not in set(free)]
    groups: list[list[int]] = []
    while free:
        group = [max(free, key=lambda slot: float(pull[slot, free].sum()))]
        while True:
            used = _width(group, bits)
            fitting = [slot for slot in free if slot not in group and used + bits[slot] <= CHUNK_BITS]
            drawn = {slot: float(pull[slot, group].sum()) for slot in fitting}
            best = max(fitting, key=lambda slot: drawn[slot], default=None)
            if best is None or not drawn[best]:
                break
            group.append(best)
        free = [slot for slot in free if slot not in group]
        groups.append(group)
    tail = _in_order([bits[slot] for slot in rest]) if rest else []
    return groups + [[rest[i] for i in group] for group in tail]
