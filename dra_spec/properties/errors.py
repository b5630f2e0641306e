"""Errors of invariants: each says where (file, line, column), what was found and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import attrs


@attrs.frozen
class Span:
    """A piece of an expression: 1-based line and column of its start, offsets of start and end in the text."""

    line: int
    column: int
    start: int
    end: int


@attrs.frozen
class Origin:
    """Where the text of an expression comes from: the file (or "--assert"), and the offset of its first line and column in it."""

    file: str = "<expression>"
    line: int = 0  # lines of the file before the expression's first line
    column: int = 0  # columns before each of its lines

    def place(self, line: int, column: int) -> str:
        return f"{self.file}:{self.line + line}:{self.column + column}"


class PropertyError(Exception):
    """Bad input to this package; the message is for the user."""


class InvariantError(PropertyError):
    """An invariant cannot be loaded or bound: wrong YAML, an unknown field, an expression that does not type-check."""


class EvaluationError(Exception):
    """An expression has no value on a world (an index out of range, null used as a list, ...): neither true nor false."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


class NotInWorld(Exception):
    """The world does not have a section or field that the expression reads (a dump without node-local state)."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class NotStatic(Exception):
    """A value depends on the state (raised while an expression is evaluated on what is fixed in a model)."""


def pointed(message: str, text: str, origin: Origin, line: int, column: int) -> str:
    """The message with file, line and column before it and the line with a caret under it."""
    lines = text.splitlines() or [""]
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    return f"{origin.place(line, column)}: {message}\n  | {source}\n  | {' ' * (column - 1)}^"


def expected(found: str, known: Iterable[str]) -> str:
    """The ending "expected a, b or c; did you mean b?" for an unknown name."""
    names = sorted(known)
    near = difflib.get_close_matches(found, names, 1, 0.6)
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"expected {listed}" + (f"; did you mean {near[0]}?" if near else "")
