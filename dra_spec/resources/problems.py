"""Where something stands in a manifest, what is wrong with it, and the one exception that carries the list."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

PRINTED_PROBLEMS = 20


@attrs.frozen
class Where:
    """A place in a manifest: file, line and column (both from 1; 0 = unknown) and the field path inside its object.

    `block`: the value is a YAML block scalar, so its text starts on the line after `line`.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    path: str = ""
    block: bool = False

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.path) if part)

    @property
    def place(self) -> str:
        """`file:line`, or as much of it as is known."""
        return f"{self.file or '<input>'}:{self.line}" if self.line else self.file

    @property
    def text_line(self) -> int:
        """The line on which the text of a scalar value starts."""
        return self.line + 1 if self.block else self.line


NOWHERE = Where()


@attrs.frozen
class Problem:
    """One thing that is wrong, or odd. `code` is stable (DRA1xx reading, DRA2xx cross references, DRA3xx warnings); `found` and
    `expected` are "" where the message says it all."""

    code: str
    message: str
    where: Where = NOWHERE
    found: str = ""
    expected: str = ""

    def __str__(self) -> str:
        place = str(self.where)
        return f"{place}: {self.message}" if place else self.message


class ManifestError(Exception):
    """Manifests that cannot be used. `problems` is never empty; `warnings` are oddities met on the way; `partial` is what could be
    read in spite of the problems (a `Loaded`, or None), good for finding further problems only."""

    def __init__(self, problems: Sequence[Problem], warnings: Sequence[Problem] = (), partial: object = None) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        self.partial = partial
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [str(p) for p in self.problems[:PRINTED_PROBLEMS]]
        if len(self.problems) > PRINTED_PROBLEMS:
            lines.append(f"... and {len(self.problems) - PRINTED_PROBLEMS} more")
        return "\n".join(lines)
