"""Which reductions a search may use, and what became of each: what every reduction and every engine share.

A reduction leaves states or transitions out without changing a verdict. Each is a module of its own with a pure function that decides
whether it may be used; what it refuses it says. Nothing is on unless it was asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Literal

import attrs

NAMES = ("dead", "merge", "symmetry", "cone", "por")
POR_MODES = ("stuck", "safety")
FORMS = "dead, merge, symmetry, cone, por, por=stuck, por=safety in a list with commas, or none, or auto"


@attrs.frozen
class Reductions:
    """What a search may use.

    `dead`: slots that nobody will read again get one fixed value; `merge`: steps that nobody else can see go together with the next one;
    `symmetry`: of states that differ in the names of interchangeable objects one is looked at; `cone`: writers that cannot
    influence a promise are left out; `por`: of independent steps not all orders are looked at ("stuck": keeps stuck states, "safety":
    keeps state and step invariants). `auto`: all are allowed, and each is used only where it is expected to pay.
    """

    dead: bool = False
    merge: bool = False
    symmetry: bool = False
    cone: bool = False
    por: Literal["", "stuck", "safety"] = ""
    auto: bool = False

    @staticmethod
    def parse(text: str) -> Reductions:
        """`dead,symmetry,por`, `none` or `auto`. "por" alone means "por=safety". Raises `ValueError`, which says what was expected."""
        words = [word.strip() for word in text.split(",")]
        if words == ["none"]:
            return NONE
        if words == ["auto"]:
            return Reductions(True, True, True, True, "safety", auto=True)
        chosen: dict[str, Any] = {}
        for word in words:
            name, equals, mode = word.partition("=")
            if word in ("none", "auto"):
                raise ValueError(f"{text!r}: {word} goes with no other reduction; expected {FORMS}")
            if name not in NAMES or (equals and (name != "por" or mode not in POR_MODES)):
                raise ValueError(f"{word!r}: expected {FORMS}")
            wanted = (mode or "safety") if name == "por" else True
            if chosen.setdefault(name, wanted) != wanted:
                raise ValueError(f"{text!r}: two modes of por; expected one of them")
        return Reductions(**chosen)

    def __iter__(self) -> Iterator[str]:
        """The names of those that may be used, in the order of `NAMES`."""
        return (name for name in NAMES if getattr(self, name))

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __str__(self) -> str:
        return ", ".join(f"por={self.por}" if name == "por" else name for name in self) or "none"


NONE = Reductions()


@attrs.frozen
class ReductionReport:
    """What became of a reduction that was asked for: whether it was applied, what exactly or why not, and what it saved ("" where nobody
    counted)."""

    name: str
    applied: bool
    reason: str = ""
    factor: str = ""

    def __str__(self) -> str:
        said = f"{self.name} ({self.reason})" if self.reason else self.name
        if not self.applied:
            return f"{self.name} not used: {self.reason}"
        return f"{said}, {self.factor}" if self.factor else said


class Refuted(Exception):
    """Something that a reduction relied on turned out not to be so: the search begins again without it.

    `name`: of the reduction; `what`: what it must do without, in its own terms; the text is the reason.
    """

    def __init__(self, name: str, what: Hashable, reason: str) -> None:
        super().__init__(reason)
        self.name, self.what = name, what


def refused(name: str, reason: str) -> ReductionReport:
    """The report of a reduction that may not be used."""
    return ReductionReport(name, False, reason)
