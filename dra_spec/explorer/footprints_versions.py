"""Versions of which only the object is known: how two of them compare is chosen, so that one run stands for all version numbers.

Versions of an object are without bound, but a model only compares them. The completion of a tree (footprints_run.py) therefore keeps the
values of a slot with all version numbers taken out, and runs the model's functions with versions that ask an oracle when they are
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import attrs

from dra_spec.explorer.values import Version, key


class Compared(BaseException):
    """A version was compared where there is no oracle."""


class Unfit(Exception):
    """A value from which version numbers cannot be taken without losing what it says."""


class Unnumbered(Version):
    """A version without a number. `choose(question)` answers yes or no; `place` tells the versions of one run apart."""

    __slots__ = ("choose", "place")
    choose: Callable[[Hashable], bool] | None
    place: Hashable

    def __init__(self, of: str, place: Hashable, choose: Callable[[Hashable], bool] | None) -> None:
        for name, value in (("of", of), ("place", place), ("choose", choose)):
            object.__setattr__(self, name, value)

    @property
    def n(self) -> Any:
        """Something that compares as the number would."""
        return self

    def next(self) -> Version:
        """The same one each time that it is asked for."""
        return Unnumbered(self.of, ("next", self.place), self.choose)

    def _ask(self, question: str, other: Version) -> bool:
        """Asks about a pair always in the same order, so that the answers to one pair agree."""
        if self.choose is None:
            raise Compared
        mine, others = repr(self.place), repr(other.place if isinstance(other, Unnumbered) else ("number", other.n))
        if question == "=":
            return self.choose(("=", *sorted((mine, others))))
        return self.choose(("<", mine, others)) if mine < others else not self.choose(("<", others, mine))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if self is other or (isinstance(other, Unnumbered) and self.place == other.place and self.choose is not None):
            return True
        return self.of == other.of and self._ask("=", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if other.of != self.of:
            raise ValueError(f"versions of two objects compared: {self} and {other}")
        if self is other or self == other:
            return False
        return self._ask("<", other)

    def __le__(self, other: object) -> bool:
        return self == other or self < other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __hash__(self) -> int:
        return hash(self.of)

    def __repr__(self) -> str:
        return f"{self.of}@?"


def has_value(thing: object) -> bool:
    """Whether a thing counts by its value, and not by its identity (a slot, a channel)."""
    return isinstance(thing, (tuple, frozenset)) or type(thing).__hash__ is not object.__hash__


def bears_versions(value: object) -> bool:
    """Whether there is a version in a value. Things that count by their identity are not looked into."""
    if isinstance(value, Version):
        return True
    if isinstance(value, (tuple, frozenset)):
        return any(map(bears_versions, value))
    kind: Any = type(value)
    if has_value(value) and attrs.has(kind):
        return any(bears_versions(getattr(value, field.name)) for field in attrs.fields(kind))
    return False


def replaced(value: Any, make: Callable[[Version], Version]) -> Any:
    """The value with each place of a version filled anew. Raises `Unfit` for a set in which several members bear versions."""
    if isinstance(value, Version):
        return make(value)
    if not bears_versions(value):
        return value
    if isinstance(value, tuple):
        return tuple(replaced(item, make) for item in value)
    if isinstance(value, frozenset):
        if sum(map(bears_versions, value)) > 1:
            raise Unfit(f"{value!r} is a set of which several members bear versions")
        return frozenset(replaced(item, make) for item in value)
    changes = {field.name.lstrip("_"): replaced(getattr(value, field.name), make) for field in attrs.fields(type(value))}
    return type(value)(**changes)


def without_numbers(value: Any) -> Any:
    """The value with all versions numbered 0: two values that differ in version numbers only become the same."""
    return replaced(value, lambda version: Version(version.of, 0))


def shape(value: object) -> Hashable:
    """The key of a value with version numbers left out."""
    return key(without_numbers(value))
