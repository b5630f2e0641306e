"""Reading conformance files: JSON (one list), JSON Lines, either of them gzipped."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SUFFIXES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


class UnreadableFile(Exception):
    """A file that holds no list of cases."""


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files, and those below the directories, in order. Raises UnreadableFile for a path that is not there."""
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(SUFFIXES))
        elif path.is_file():
            yield path
        else:
            raise UnreadableFile(f"{path}: no such file or directory")


def _lines(path: Path, text: str) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise UnreadableFile(f"{path}:{number}: {error}") from None


def entries(path: Path) -> list[dict[str, Any]]:
    """The cases of a file. Raises UnreadableFile."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
        if text.lstrip().startswith("["):
            found = json.loads(text)
        else:
            found = list(_lines(path, text)) if "\n{" in text.strip() else [json.loads(text)]
    except (OSError, ValueError, EOFError) as error:
        raise UnreadableFile(f"{path}: {error}") from None
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise UnreadableFile(f"{path}: found no list of objects")
    return found
