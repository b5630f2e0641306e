"""Values of slots: versions that the engine may renumber, and the walk that finds and renames them.

A version of an API object (resourceVersion, or the incarnation behind a UID) is a plain integer to the
text of a model: it is compared and counted up, nothing else. Only the order and the equality of the versions
of *one* object that are alive in a state matter, so the engine renames them, in order, to 0, 1, 2, ...
after each transition (docs/decisions/0002-versions.md says why nothing is lost).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import attrs


@functools.total_ordering
@attrs.frozen(order=False, repr=False)
class Version:
    """Version number `n` of the object called `of`.

    Comparing versions of two objects is a mistake in the model and raises `ValueError`.
    """

    of: str
    n: int

    def next(self) -> Version:
        """The version that the next write of the object gets; above all that are alive, so it is asked of the newest one only (`made`)."""
        new = Version(self.of, self.n + 1)
        if _made is not None:
            _made.append((self, new))
        return new

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if other.of != self.of:
            raise ValueError(f"versions of two objects compared: {self} and {other}")
        return self.n < other.n

    def __repr__(self) -> str:
        return f"{self.of}@{self.n}"


_made: list[tuple[Version, Version]] | None = None  # what is noted for `made`
R = TypeVar("R")


def made(run: Callable[[], R]) -> tuple[R, list[tuple[Version, Version]]]:
    """What a function gives, and the versions that it made: of which one, and the new one."""
    global _made
    before, _made = _made, []
    try:
        return run(), _made
    finally:
        _made = before


_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})  # types of values that hold no versions and no other values


def key(value: object) -> Hashable:
    """A key that distinguishes by type as well as by value (`True` is not `1`, `1.0` is not `1`).

    Raises `TypeError` for values into which nobody looks, though they hold others: named tuples, dataclasses.
    """
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if kind is tuple:
        return (tuple, tuple([key(item) for item in value]))  # type: ignore[attr-defined]
    if kind is frozenset:
        return (frozenset, frozenset([key(item) for item in value]))  # type: ignore[attr-defined]
    if kind in _FIELDS or attrs.has(kind):
        return (kind, tuple([key(getattr(value, name)) for name in _fields(kind)]))
    if isinstance(value, (tuple, frozenset)) or is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is a named tuple, a dataclass or the like; use a plain tuple or an attrs class")
    return (kind, value)


def identity(thing: object) -> Hashable:
    """A key of an argument: by type and value where it has a value, by itself otherwise."""
    if type(thing) in _PLAIN:
        return (type(thing), thing)
    if isinstance(thing, (tuple, list)):
        return (type(thing), tuple(identity(item) for item in thing))
    if isinstance(thing, (frozenset, set)):
        return (type(thing), frozenset(identity(item) for item in thing))
    if isinstance(thing, dict):
        return (dict, frozenset((identity(k), identity(v)) for k, v in thing.items()))
    if type(thing).__hash__ is object.__hash__:
        return (type(thing), thing)
    if is_dataclass(thing):
        return (type(thing), tuple(identity(getattr(thing, field.name)) for field in fields(thing)))
    return key(thing)


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(cls: Any) -> tuple[str, ...]:
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(field.name for field in attrs.fields(cls))
    return _FIELDS[cls]


def versions(value: object) -> Iterator[Version]:
    """All versions inside a value, in no particular order, repeats included."""
    if type(value) in _PLAIN:
        return
    if isinstance(value, Version):
        yield value
    elif type(value) in (tuple, frozenset):
        for item in value:  # type: ignore[attr-defined]
            yield from versions(item)
    elif attrs.has(type(value)):
        for name in _fields(type(value)):
            yield from versions(getattr(value, name))


def rename(value: Any, names: Mapping[Version, Version]) -> Any:
    """The value with each version replaced by `names[version]`; versions that `names` lacks stay."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Version):
        return names.get(value, value)
    if type(value) is tuple:
        return tuple(rename(item, names) for item in value)
    if type(value) is frozenset:
        return frozenset(rename(item, names) for item in value)
    if attrs.has(type(value)):
        changes = {name: rename(getattr(value, name), names) for name in _fields(type(value))}
        return type(value)(**{name.lstrip("_"): changed for name, changed in changes.items()})
    return value
