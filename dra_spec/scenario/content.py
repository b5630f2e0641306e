"""Finding shipped models and counterexamples by name."""

from __future__ import annotations

from pathlib import Path

from dra_spec.content import ContentKind, directory


def shipped(kind: ContentKind) -> dict[str, Path]:
    """The shipped files of a kind by name (the file's name without ending), in order of name; empty if none ship."""
    try:
        where = directory(kind)
    except FileNotFoundError:
        return {}
    return {path.stem: path for path in sorted(where.glob("*.yaml"))}
