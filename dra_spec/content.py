"""Where the shipped content is: models, invariants and counterexamples are data, found by name or by path."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

ContentKind = Literal["models", "invariants", "counterexamples"]


def directory(kind: ContentKind) -> Path:
    """The directory of one kind of content: inside the installed package, else at the root of a source checkout.

    Raises `FileNotFoundError` if the installation has neither.
    """
    package = Path(__file__).resolve().parent
    candidates = (package / "content" / kind, package.parent / kind)
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"no directory of {kind}: looked for {' and '.join(map(str, candidates))}")
