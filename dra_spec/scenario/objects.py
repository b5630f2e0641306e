"""Reads the manifests of a model: files, folders, and documents inside the model file, as one set of objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.resources.reader import SUFFIXES, Loaded, load, load_text
from dra_spec.resources.slices import ApiObject

_TWICE = "DRA123"  # an object occurs twice


@attrs.frozen
class Read:
    """What was read; `clashes`: objects that two files give different content, of which only the first counts."""

    loaded: Loaded
    clashes: Sequence[str] = ()


def read(paths: Sequence[Path], texts: Iterable[tuple[str, str]] = (), replicas: int = 2) -> Read:
    """The objects of files, folders and (file name, text) pairs; a workload contributes at most `replicas` pods.

    The same object in two files, word for word, counts once: people keep examples in files that repeat a claim. Raises `ManifestError`,
    also for an object that one file has twice.
    """
    parts = [load_text(text, file=name, max_replicas=replicas) for name, text in texts]
    if not paths:
        return _merged(parts)
    try:
        return _merged([load(paths, max_replicas=replicas), *parts])
    except ManifestError as error:
        if any(problem.code != _TWICE for problem in error.problems):
            raise
    return _merged([*(load([file], max_replicas=replicas) for file in _files(paths)), *parts])


def _files(paths: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        files += sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file()) if path.is_dir() else [path]
    return files


def _merged(parts: Sequence[Loaded]) -> Read:
    first: dict[tuple[str, str, str], ApiObject] = {}
    warnings = [warning for part in parts for warning in part.warnings]
    clashes = []
    for each in (o for part in parts for o in part.objects):
        key = (each.KIND, each.namespace, each.name)
        other = first.setdefault(key, each)
        if other is each:
            continue
        if _plain(other) == _plain(each):
            text = f"{each.label} is also in {other.where().place}; it counts once"
            warnings.append(Problem("DRA320", text, each.where("metadata.name")))
        else:
            clashes.append(f"{each.where().place}: {each.label} is another one in {other.where().place}, and only that one counts")
    return Read(Loaded(tuple(first.values()), tuple(warnings)), clashes)


def _plain(each: ApiObject) -> object:
    return each.source.node.plain() if each.source else each
