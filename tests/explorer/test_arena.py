"""Arrays that grow in place, and by copying where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from dra_spec.explorer import arena
from dra_spec.explorer.arena import Growing


@pytest.mark.parametrize("reserved", [True, False])
def test_what_is_there_stays_and_what_is_new_is_zero(monkeypatch: pytest.MonkeyPatch, reserved: bool) -> None:
    if not reserved:
        monkeypatch.setattr(arena, "_without_commitment", lambda: None)
    growing = Growing(3, (2,), np.uint64)
    growing.data[:] = [[1, 2], [3, 4], [5, 6]]
    for length in (4, growing.next_length(), 1000, 600_000):
        growing.grow(max(length, 4))
        assert growing.data[:3].tolist() == [[1, 2], [3, 4], [5, 6]]
        assert not growing.data[3:].any()
        assert growing.data.shape == (max(length, 4), 2)
        assert growing.data.flags.c_contiguous
        assert growing.data.flags.writeable


def test_beyond_the_machine_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arena, "_physical", lambda: 1 << 16)
    growing = Growing(8, (), np.uint32)
    growing.data[:] = range(8)
    for length in (1 << 14, (1 << 14) + 1, growing.next_length() + (1 << 15)):
        growing.grow(length)
        assert len(growing.data) == length
        assert growing.data[:8].tolist() == list(range(8))
        assert not growing.data[8:].any()


def test_where_there_is_room_it_grows_in_small_steps_without_moving() -> None:
    growing = Growing(1 << 10, (), np.uint64)
    if growing.next_length() > (1 << 10) * 9 // 8:
        pytest.skip("no address space can be reserved here")
    before = growing.data.ctypes.data
    for _ in range(50):
        growing.grow(growing.next_length())
    assert growing.data.ctypes.data == before


def test_an_empty_array_takes_nothing() -> None:
    assert Growing(0, (2,), np.uint32).data.shape == (0, 2)
