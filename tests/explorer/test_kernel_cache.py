"""Machine code on disk is used only for the sources that it was made from."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from dra_spec.explorer import kernel_cache, kernel_place, kernels


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    folder.mkdir()
    for path in kernel_place.sources():
        shutil.copy(path, folder)
    return folder


def test_each_kernel_source_counts(copy: Path) -> None:
    before = kernel_place.digest(copy)
    assert before == kernel_place.digest()
    for path in kernel_place.sources(copy):
        text = path.read_text()
        path.write_text(text + "\n")
        assert kernel_place.digest(copy) != before, f"a change in {path.name} leaves the old machine code in use"
        path.write_text(text)
    (copy / "kernels_more.py").write_text("")
    assert kernel_place.digest(copy) != before


def test_the_kernels_live_in_the_folder_of_their_sources() -> None:
    place = kernel_place.place()
    assert place is not None
    assert place.name == f"kernels-{kernel_place.digest()}"
    assert Path(kernels.expand._cache.cache_path).parent == place


@pytest.fixture
def fresh() -> object:
    kernel_place.place.cache_clear()
    yield
    kernel_place.place.cache_clear()


def test_old_folders_go_and_recent_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: object) -> None:
    monkeypatch.setattr(kernel_place, "candidates", lambda: iter([tmp_path]))
    old, recent = tmp_path / "kernels-old", tmp_path / "kernels-recent"
    for folder in (old, recent):
        folder.mkdir()
        (folder / "in-use").touch()
    long_ago = time.time() - 15 * 86_400
    os.utime(old / "in-use", (long_ago, long_ago))
    assert kernel_place.place() == tmp_path / f"kernels-{kernel_place.digest()}"
    assert not old.exists()
    assert recent.exists()


def test_where_no_folder_can_be_written_the_kernels_still_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: object) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setattr(kernel_place, "candidates", lambda: iter([blocked]))
    assert kernel_place.place() is None
    assert kernel_cache.compiled(_double)(21) == 42
    free = tmp_path / "free"
    kernel_place.place.cache_clear()
    monkeypatch.setattr(kernel_place, "candidates", lambda: iter([blocked, free]))
    assert kernel_place.place() == free / f"kernels-{kernel_place.digest()}"


def _double(n: int) -> int:
    return 2 * n
