"""Values of slots: versions that the engine may renumber, and the walk that finds and renames them.

A version of an API object (resourceVersion, or the incarnation behind a UID) is a plain integer to the
text of a model: it is compared and counted up, nothing else. Only the order and the equality of the versions
of *one* object that are alive in a state matter, so the engine renames them, in order, to 0, 1, 2, ...
after each transition (docs/decisions/0002-versions.md says why nothing is lost).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

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
        """The version that the next write of the object gets; above all that are alive."""
        return Version(self.of, self.n + 1)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        if other.of != self.of:
            raise ValueError(f"versions of two objects compared: {self} and {other}")
        return self.n < other.n

    def __repr__(self) -> str:
        return f"{self.of}@{self.n}"


_PLAIN = frozenset({int, str, bool, float, bytes, type(None)})  # types of values that hold no versions and no other values


def key(value: object) -> Hashable:
    """A key that distinguishes by type as well as by value (`True` is not `1`, `1.0` is not `1`)."""
    if type(value) in _PLAIN:
        return (type(value), value)
    if isinstance(value, tuple):
        return (tuple, tuple(key(item) for item in value))
    if isinstance(value, frozenset):
        return (frozenset, frozenset(key(item) for item in value))
    if attrs.has(type(value)):
        return (type(value), tuple(key(getattr(value, name)) for name in _fields(type(value))))
    return (type(value), value)


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
    elif isinstance(value, (tuple, frozenset)):
        for item in value:
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
    if isinstance(value, tuple):
        return tuple(rename(item, names) for item in value)
    if isinstance(value, frozenset):
        return frozenset(rename(item, names) for item in value)
    if attrs.has(type(value)):
        changes = {name: rename(getattr(value, name), names) for name in _fields(type(value))}
        return type(value)(**{name.lstrip("_"): changed for name, changed in changes.items()})
    return value
