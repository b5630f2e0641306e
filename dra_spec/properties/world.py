"""The world as nested dicts and lists: what the reference and a dump give, and the plain form of a state of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_spec.properties.errors import NotInWorld, expected
from dra_spec.properties.schema import (
    BOOL,
    INT,
    STEP_WORLD,
    STRING,
    TOP_LEVEL,
    UID,
    WORLD,
    ListType,
    MapType,
    Nullable,
    ObjectType,
    Scalar,
    Type,
)
from dra_spec.properties.values import Items, Thing


class PlainWorld(Thing):
    """A world made of plain data in the shape of the schema. Sections that are missing are noticed when an expression reads them.

    For a step: `before`, the world before it, and `step`: {writer, action, step, outcome, params}. `absent`: names of objects that could
    exist in a top-level list and do not (only a splitter asks for them).
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        before: Mapping[str, Any] | None = None,
        step: Mapping[str, Any] | None = None,
        absent: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.data, self.before = data, before
        self.type = WORLD if before is None else STEP_WORLD
        self.step = step
        self._absent = absent or {}

    def get(self, field: str) -> Any:
        if field == "step":
            if self.step is None:
                raise NotInWorld("step")
            return _Object(self.step, self.type.fields["step"], "step", None)
        if field not in self.data:
            raise NotInWorld(field)
        type_ = self.type.fields[field]
        assert isinstance(type_, ListType)
        before = None if self.before is None else self.before.get(field, ())
        return _Objects(self.data[field], type_, field, before, self._absent.get(field, ()))


class _Object(Thing):
    def __init__(self, data: Mapping[str, Any], type_: Type, path: str, before: Sequence[Mapping[str, Any]] | None) -> None:
        assert isinstance(type_, ObjectType)
        self.data, self._type, self._path, self._before = data, type_, path, before

    def get(self, field: str) -> Any:
        type_ = self._type.fields[field]
        if field == "exists" and "exists" not in self.data:
            return True
        if field == "old" and self._before is not None:
            old = next((item for item in self._before if item["name"] == self.data["name"]), None)
            return Absent(type_) if old is None else _Object(old, type_, f"{self._path}.old", None)
        if field not in self.data:
            raise NotInWorld(f"{self._path}.{field}")
        return _wrap(self.data[field], type_, f"{self._path}.{field}")


def _wrap(value: Any, type_: Type, path: str) -> Any:
    if isinstance(type_, Nullable):
        return None if value is None else _wrap(value, type_.of, path)
    if isinstance(type_, ObjectType):
        return _Object(value, type_, path, None)
    if isinstance(type_, ListType) and isinstance(type_.element, ObjectType):
        return _Objects(value, type_, path, None, ())
    return value


class _Objects(Items):
    """A list of objects. It knows its universe, present and absent names, only if names are unique."""

    def __init__(
        self,
        data: Sequence[Mapping[str, Any]],
        type_: ListType,
        path: str,
        before: Sequence[Mapping[str, Any]] | None,
        absent: Sequence[str],
    ) -> None:
        self._data, self._type, self._path, self._before, self._absent = data, type_, path, before, absent

    def __iter__(self) -> Iterator[Any]:
        return (_Object(item, self._type.element, self._path, self._before) for item in self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, item: object) -> bool:
        return False  # objects are not compared; the type checker refuses it

    def universe(self) -> Sequence[str] | None:
        if self._type.key is None:
            return None
        names = [str(item[self._type.key]) for item in self._data]
        return (*names, *self._absent) if len(set(names)) == len(names) else None

    def at(self, name: str) -> Any | None:
        key = self._type.key or ""
        found = next((item for item in self._data if item[key] == name), None)
        return None if found is None else _Object(found, self._type.element, self._path, self._before)

    def peek(self, name: str) -> Any:
        assert isinstance(self._type.element, ObjectType)
        return self.at(name) or Absent(self._type.element)


class Absent(Thing):
    """An object that does not exist: `exists` false, every other field at the zero value of its type."""

    def __init__(self, type_: Type) -> None:
        assert isinstance(type_, ObjectType)
        self._type = type_

    def get(self, field: str) -> Any:
        return zero(self._type.fields[field])


def zero(type_: Type) -> Any:
    """False, 0, "" or an empty list; for an object one whose fields are all zero."""
    if isinstance(type_, ObjectType):
        return Absent(type_)
    if isinstance(type_, Nullable):
        return None
    if isinstance(type_, MapType):
        return {}
    if isinstance(type_, ListType):
        return ()
    return {BOOL: False, INT: 0}.get(type_, "") if isinstance(type_, Scalar) else None


def problems(data: Any, type_: Type = WORLD, path: str = "world") -> list[str]:
    """What in plain data does not fit the schema, one line each: unknown fields and wrong types. Missing fields are allowed."""
    if isinstance(type_, Nullable):
        return [] if data is None else problems(data, type_.of, path)
    if isinstance(type_, ObjectType):
        if not isinstance(data, Mapping):
            return [f"{path}: expected {type_}, found {type(data).__name__}"]
        found = [f"{path}: unknown field {name}, {expected(str(name), type_.fields)}" for name in data if name not in type_.fields]
        known = [problems(value, type_.fields[name], f"{path}.{name}") for name, value in data.items() if name in type_.fields]
        return found + [line for lines in known for line in lines]
    if isinstance(type_, ListType):
        if not isinstance(data, (list, tuple)):
            return [f"{path}: expected a list, found {type(data).__name__}"]
        return [line for i, item in enumerate(data) for line in problems(item, type_.element, f"{path}[{i}]")]
    if isinstance(type_, MapType):
        fits = isinstance(data, Mapping) and all(isinstance(key, str) for key in data)
        return [] if fits else [f"{path}: expected {type_}, found {type(data).__name__}"]
    wanted = {BOOL: bool, INT: int, STRING: str, UID: str}
    python = wanted[type_] if isinstance(type_, Scalar) and type_ in wanted else object
    return [] if type(data) is python else [f"{path}: expected {type_}, found {type(data).__name__} {data!r}"]


def sections(data: Mapping[str, Any]) -> frozenset[str]:
    """The top-level sections that a plain world has."""
    return frozenset(name for name in TOP_LEVEL if name in data)
