"""Versions of which only the object is known: how two of them compare is chosen, so that one run stands for all version numbers.

Versions of an object are without bound, but a model only compares them. The completion of a tree (completion.py) therefore keeps the
values of a slot with all version numbers taken out, and runs the model's functions with versions that ask the run when they are
compared. Two versions of an object that never gets a new one are the same, so nobody need ask (`Chooser.compare`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import attrs

from dra_spec.explorer.compound import Chooser, Unfit, Unknown, Unseen, is_unknown
from dra_spec.explorer.values import Version, key


class Unnumbered(Version):
    """A version without a number. `run` answers how it compares (None: nobody does); `place` tells the versions of one run apart."""

    __slots__ = ("place", "run")
    run: Chooser | None
    place: Hashable

    def __init__(self, of: str, place: Hashable, run: Chooser | None) -> None:
        for name, value in (("of", of), ("place", place), ("run", run)):
            object.__setattr__(self, name, value)

    @property
    def n(self) -> Any:
        """Something that compares as the number would."""
        return self

    def next(self) -> Version:
        """The same one each time that it is asked for."""
        if self.run is None:
            raise Unseen
        self.run.moved(self.of)
        return Unnumbered(self.of, ("next", self.place), self.run)

    def _ask(self, question: str, other: Version) -> bool:
        """Asks about a pair always in the same order, so that the answers to one pair agree."""
        if self.run is None:
            raise Unseen
        mine, others = repr(self.place), repr(other.place if isinstance(other, Unnumbered) else ("number", other.n))
        of = self.of if isinstance(other, Unnumbered) else None
        if question == "=":
            return self.run.compare(("=", *sorted((mine, others))), of)
        return self.run.compare(("<", mine, others), of) if mine < others else not self.run.compare(("<", others, mine), of)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if self is other or (isinstance(other, Unnumbered) and self.place == other.place and self.run is not None):
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
    return is_unknown(thing) or isinstance(thing, (tuple, frozenset)) or type(thing).__hash__ is not object.__hash__


def bears_versions(value: object) -> bool:
    """Whether there is a version, or a hole that may have one, in a value. Things that count by their identity are not looked into."""
    kind = type(value)
    if kind in _PLAIN:
        return False
    if issubclass(kind, (Unknown, Version)):
        return True
    if issubclass(kind, (tuple, frozenset)):
        return any(map(bears_versions, value))  # type: ignore[call-overload]
    return any(bears_versions(getattr(value, name)) for name in _names(kind))


def replaced(value: Any, make: Callable[[Version], Version], part: Callable[[Any], Any] | None = None) -> Any:
    """The value with each place of a version filled anew, and with `part` each place of something unknown. Raises `Unfit` for a set in
    which several members bear versions."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if issubclass(kind, Unknown):
        return value if part is None else part(value)
    if issubclass(kind, Version):
        return make(value)
    if issubclass(kind, tuple):
        members = [replaced(item, make, part) for item in value]
        return tuple(members) if any(new is not old for new, old in zip(members, value, strict=True)) else value
    if issubclass(kind, frozenset):
        bearing = [item for item in value if bears_versions(item)]
        if len(bearing) > 1:
            raise Unfit(f"{value!r} is a set of which several members bear versions")
        return value - {*bearing} | {replaced(item, make, part) for item in bearing} if bearing else value
    changed: dict[str, Any] = {}
    for name in _names(kind):
        old = getattr(value, name)
        if type(old) not in _PLAIN and (new := replaced(old, make, part)) is not old:
            changed[name.lstrip("_")] = new
    return attrs.evolve(value, **changed) if changed else value


_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})  # types of values with nothing in them
_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a type of values, none if its values count by their identity or have no fields."""
    if kind not in _NAMES:
        by_value = kind.__hash__ is not object.__hash__ and attrs.has(kind)
        _NAMES[kind] = tuple(field.name for field in attrs.fields(kind)) if by_value else ()
    return _NAMES[kind]


def without_numbers(value: Any) -> Any:
    """The value with all versions numbered 0: two values that differ in version numbers only become the same."""
    return replaced(value, lambda version: Version(version.of, 0))


def shape(value: object) -> Hashable:
    """The key of a value with version numbers left out."""
    return key(without_numbers(value))
