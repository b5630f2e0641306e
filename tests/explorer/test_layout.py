"""Fields of packed rows, and the chunks that they make."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dra_spec.explorer import kernels_store
from dra_spec.explorer.layout import CHUNK_BITS, Layout, cluster, moves

SIZES = st.lists(st.one_of(st.integers(0, 5), st.integers(1, 1 << 20)), min_size=1, max_size=60)


@st.composite
def arranged(draw: st.DrawFn) -> tuple[list[int], list[list[int]] | None]:
    sizes = draw(SIZES)
    if draw(st.booleans()):
        return sizes, None
    order = draw(st.permutations(range(len(sizes))))
    cuts = sorted(draw(st.sets(st.integers(1, len(sizes)))))
    groups = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(sizes)], strict=True)]
    return sizes, [group for group in groups if group]


@given(arranged())
def test_fields_are_disjoint_and_large_enough(case: tuple[list[int], list[list[int]] | None]) -> None:
    sizes, groups = case
    layout = Layout(np.array(sizes, np.int64), groups)
    word, shift, mask, _ = layout.arrays
    taken: set[tuple[int, int]] = set()
    for w, s, m, size in zip(word, shift, mask, sizes, strict=True):
        bits = {(int(w), int(s) + bit) for bit in range(int(m).bit_length())}
        assert all(w < layout.words and bit < 64 for w, bit in bits)
        assert not taken & bits
        taken |= bits
        assert max(size, 1) <= int(m) + 1
    assert layout.fits(np.array(sizes))
    assert not layout.fits(layout.limits + 1)


@given(arranged(), st.data())
def test_a_row_in_another_layout_holds_the_same(case: tuple[list[int], list[list[int]] | None], data: st.DataObject) -> None:
    """Also where a field has fewer bits there, since others grew."""
    sizes, groups = case
    larger = np.array([size * data.draw(st.integers(1, 9)) for size in sizes], np.int64)
    old, new = Layout(np.array(sizes, np.int64)), Layout(larger, groups)
    values = [data.draw(st.integers(0, max(size - 1, 0))) for size in sizes]
    rows, moved = np.zeros((3, old.words), np.uint64), np.zeros((3, new.words), np.uint64)
    for slot, value in enumerate(values):
        rows[1, old.arrays.word[slot]] |= np.uint64(value) << old.arrays.shift[slot]
    kernels_store.repack(moves(old, new), rows, moved, 2)
    word, shift, mask, _ = new.arrays
    assert ((moved[1, word] >> shift) & mask).tolist() == values
    assert not moved[[0, 2]].any()


@given(arranged())
def test_a_chunk_holds_its_slots_and_nothing_else(case: tuple[list[int], list[list[int]] | None]) -> None:
    """What is remembered for a chunk is looked up by its bits alone, so they must tell all its slots and no other."""
    sizes, groups = case
    layout = Layout(np.array(sizes, np.int64), groups)
    word, shift, mask, chunk_of = layout.arrays
    for c, chunk in enumerate(layout.chunks):
        mine = {chunk.shift + bit for bit in range(chunk.bits)}
        assert chunk.bits <= 14
        for slot in range(len(sizes)):
            bits = {int(shift[slot]) + bit for bit in range(int(mask[slot]).bit_length())}
            if chunk_of[slot] == c:
                assert word[slot] == chunk.word
                assert bits <= mine
            elif word[slot] == chunk.word:
                assert not bits & mine
    wide = [slot for slot in range(len(sizes)) if chunk_of[slot] < 0]
    assert all(int(mask[slot]).bit_length() > 14 for slot in wide)


@given(st.data())
def test_clusters_are_small_and_hold_each_slot_once(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, 20), min_size=1, max_size=30))
    pull = np.zeros((len(bits), len(bits)))
    for i in range(len(bits)):
        for j in range(i):
            pull[i, j] = pull[j, i] = data.draw(st.sampled_from([0.0, 0.0, 0.5, 2.0]))
    groups = cluster(pull, bits)
    assert sorted(slot for group in groups for slot in group) == list(range(len(bits)))
    for group in groups:
        assert len(group) == 1 or sum(bits[slot] for slot in group) <= CHUNK_BITS


def test_slots_that_pull_each_other_come_together() -> None:
    pull = np.zeros((6, 6))
    for a, b in ((0, 5), (1, 4), (2, 3)):
        pull[a, b] = pull[b, a] = 1.0
    groups = cluster(pull, [6] * 6)
    assert {frozenset(group) for group in groups} == {frozenset({0, 5}), frozenset({1, 4}), frozenset({2, 3})}
