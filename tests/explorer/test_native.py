"""Machine code that is loaded without Numba gives what Numba gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dra_spec.explorer import kernel_place, kernels_base, kernels_store, native
from dra_spec.explorer.layout import Layout, moves
from dra_spec.explorer.native import Kernel

ROW = np.array([3, 1 << 63, 12345678901234567890], np.uint64)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(native, "place", lambda: tmp_path)
    return tmp_path


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.entry"))


def test_numbers_go_in_and_out(folder: Path) -> None:
    assert Kernel("kernels_base", "hash_of")(ROW) == int(kernels_base.hash_of(ROW))
    assert len(entries(folder)) == 1
    assert Kernel("kernels_base", "hash_of")(ROW[:1].copy()) == int(kernels_base.hash_of(ROW[:1].copy()))
    assert len(entries(folder)) == 1, "the same types need no other entry"


def test_both_ways_to_an_address_agree() -> None:
    for values in (np.zeros(0), np.zeros((3, 4), np.uint32)[1:], ROW, np.frombuffer(bytearray(64), np.uint8)):
        assert native._address(values) == native._plain_address(values) == values.ctypes.data


def test_arrays_in_named_tuples_are_written(folder: Path) -> None:
    sizes = np.array([5, 1 << 40, 9, 1 << 30, 2], np.int64)
    old, new = Layout(sizes), Layout(sizes, [[4, 3], [2, 1], [0]])
    rows = np.arange(20, dtype=np.uint64).reshape(10, 2) * np.uint64(0x123456789ABCDEF)
    into, expected = np.zeros((10, new.words), np.uint64), np.zeros((10, new.words), np.uint64)
    assert rows.shape[1] == old.words
    assert Kernel("kernels_store", "repack")(moves(old, new), rows, into, 10) == 0
    kernels_store.repack(moves(old, new), rows, expected, 10)
    assert into.any()
    assert np.array_equal(into, expected)


def test_other_arrays_of_the_same_types_are_noted(folder: Path) -> None:
    """Each call is asked of a kernel that remembers the last ones, and of one that knows nothing."""
    sizes = np.array([5, 1 << 40, 9, 1 << 30, 2], np.int64)
    layouts = [Layout(sizes), Layout(sizes, [[4, 3], [2, 1], [0]]), Layout(sizes * 2)]
    bound = native.Bound("kernels_store", "repack")
    how, count = moves(layouts[0], layouts[1]), 10
    rows = np.arange(20, dtype=np.uint64).reshape(10, 2) * np.uint64(0x123456789ABCDEF)
    for step in range(12):
        if step % 3 == 0:
            how = moves(layouts[0], layouts[step // 3 % 3])
        if step % 4 == 1:
            how = how._replace(mask=how.mask.copy())
        if step % 2:
            count = 3 + step % 7
            rows = rows[::-1].copy()
        into, expected = np.zeros((count, layouts[0].words), np.uint64), np.zeros((count, layouts[0].words), np.uint64)
        bound(how, rows[:count], into, count)
        Kernel("kernels_store", "repack")(how, rows[:count], expected, count)
        assert into.any()
        assert np.array_equal(into, expected), step


def test_what_is_refused_leaves_nothing_behind(folder: Path) -> None:
    bound = native.Bound("kernels_base", "hash_of")
    for row in (ROW, ROW.copy(), ROW[:2].copy()):
        assert bound(row) == int(kernels_base.hash_of(row))
    for odd, error in ((ROW[::2], ValueError), ([1, 2], TypeError)):
        with pytest.raises(error):
            bound(odd)
        assert bound(ROW) == int(kernels_base.hash_of(ROW))
    assert len(entries(folder)) == 1


def test_a_spoilt_file_is_made_anew(folder: Path) -> None:
    wanted = Kernel("kernels_base", "hash_of")(ROW)
    (file,) = entries(folder)
    for spoilt in (b"", b"no json\n", b'{"told": "other types", "symbol": "x", "gives": "<u8"}\nx'):
        file.write_bytes(spoilt)
        assert Kernel("kernels_base", "hash_of")(ROW) == wanted
        assert file.read_bytes() != spoilt


def test_without_a_folder_numba_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "place", lambda: None)
    assert Kernel("kernels_base", "hash_of")(ROW) == int(kernels_base.hash_of(ROW))


def test_it_is_said_once_that_kernels_are_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    native.before_compiling(told.append)
    for _ in range(2):
        Kernel("kernels_base", "hash_of")(ROW)
    Kernel("kernels_base", "hash_of")(ROW[:1].copy())
    assert told == [True]
    native.before_compiling(told.append)
    Kernel("kernels_base", "hash_of")(ROW)
    assert told == [True], "nothing is compiled, as the machine code is there"
    monkeypatch.setattr(native, "place", lambda: None)
    Kernel("kernels_base", "hash_of")(ROW)
    assert told == [True, False]


def test_an_array_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Kernel("kernels_base", "hash_of")(ROW[::2])


def test_the_second_start_does_without_numba() -> None:
    """The reason for all this: Numba takes most of the time of a small search."""
    if kernel_place.place() is None:
        pytest.skip("no folder for machine code")
    text = (
        "import sys, numpy as np; from dra_spec.explorer.native import Kernel; "
        "Kernel('kernels_base', 'hash_of')(np.array([1], np.uint64)); print('numba' in sys.modules)"
    )
    answers = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert answers[1] == "False"
