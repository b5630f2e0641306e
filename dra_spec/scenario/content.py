"""Finding shipped models and counterexamples by name."""

from __future__ import annotations

from pathlib import Path

from dra_spec.content import ContentKind, directory
from dra_spec.scenario.strict import InputError, nearest


def shipped(kind: ContentKind) -> dict[str, Path]:
    """The shipped files of a kind by name (the file's name without ending), in order of name; empty if none ship."""
    try:
        where = directory(kind)
    except FileNotFoundError:
        return {}
    return {path.stem: path for path in sorted(where.glob("*.yaml"))}


def find_model(name: str) -> Path:
    """A model file by shipped name or by path. Raises `InputError` with the nearest name."""
    known = shipped("models")
    if name in known:
        return known[name]
    if Path(name).is_file():
        return Path(name)
    raise InputError(f"no model {name!r}{nearest(name, known)}")
