"""How a selector can fail."""

from __future__ import annotations

import unicodedata

import attrs

from dra_spec.resources.problems import NOWHERE, ManifestError, Problem, Where


@attrs.frozen
class SelectorError:
    """A selector that failed at run time on a device: a value, because it decides an allocation (the attempt aborts).

    `kind`: the class of the error, for example no-such-key, no-such-overload, cost-limit, result-not-bool.
    """

    message: str
    expression: str = ""
    device: str = ""
    kind: str = ""

    def __str__(self) -> str:
        return f"selector {self.expression!r} on device {self.device}: {self.message}"


class UnsupportedFeature(Exception):
    """Something valid that this tool does not encode yet: what depends on it is undecided, never guessed."""

    def __init__(self, feature: str, where: Where = NOWHERE) -> None:
        self.feature = feature
        self.where = where
        super().__init__(f"{where}: {feature}" if str(where) else feature)


class SelectorSyntaxError(ManifestError):
    """An expression that does not compile, or that the API refuses. Its problem has code DRA130; the message shows the line and a caret
    below the place. `kind`: the class of the error, for example syntax, undeclared-reference, no-matching-overload.
    """

    kind: str = "syntax"


def _blank(character: str) -> str:
    """What is as wide on a terminal: a tab stays one, wide characters take two cells, combining ones none."""
    if character == "\t":
        return character
    if unicodedata.combining(character):
        return ""
    return "  " if unicodedata.east_asian_width(character) in "WF" else " "


def syntax_error(expression: str, where: Where, line: int, column: int, message: str, kind: str = "syntax") -> SelectorSyntaxError:
    """`line` and `column` count from 1 inside the expression."""
    lines = expression.splitlines() or [""]
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    before = text[: max(column - 1, 0)].ljust(max(column - 1, 0))
    shown, caret = text.rstrip(), "".join(map(_blank, before)) + "^"
    place = attrs.evolve(where, line=where.text_line + line - 1, block=False) if where.line else where
    head = f"CEL line {line}, column {column}: {message}"
    error = SelectorSyntaxError(
        [Problem("DRA130", f"{head}\n  {shown}\n  {caret}", place, shown, "a CEL expression that gives true or false")]
    )
    error.kind = kind
    return error
