"""Reads the YAML file of an invariant strictly, and knows where each field is."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from dra_spec.properties.assumptions import ASSUMPTIONS
from dra_spec.properties.errors import InvariantError, Origin, expected

MAX_BYTES = 65536  # of a file; the longest invariant has about two thousand


_REPR = reprlib.Repr()
_REPR.maxlevel = 2  # aliases can make a small file an enormous value


def short(value: object) -> str:
    """A value for a message, cut."""
    return _REPR.repr(value)


@attrs.frozen
class Field:
    """A value and where its text starts."""

    value: Any
    origin: Origin


@attrs.frozen(eq=False)
class Document:
    """The fields of a file. Each accessor raises `InvariantError` with file, line, what was found and what was expected."""

    path: str
    lines: Sequence[str]
    data: CommentedMap

    def has(self, name: str) -> bool:
        return name in self.data

    def fail(self, name: str, message: str) -> NoReturn:
        raise InvariantError(f"{self.path}:{self.data.lc.key(name)[0] + 1}: {name}: {message}")

    def field(self, name: str) -> Field:
        return _field(self.path, self.lines, self.data, name)

    def text(self, name: str) -> str:
        value = self.data[name]
        if not isinstance(value, str) or not value.strip():
            self.fail(name, f"expected text, found {short(value)}")
        return " ".join(value.split())

    def texts(self, name: str) -> list[str]:
        """A text, or a list of texts."""
        value = self.data[name]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not items or not all(isinstance(item, str) and item.strip() for item in items):
            self.fail(name, f"expected text or a list of texts, found {short(value)}")
        return [" ".join(item.split()) for item in items]

    def names(self, name: str, known: Iterable[str]) -> list[str]:
        """A list of known names."""
        value, known = self.data[name], list(known)
        if not isinstance(value, list):
            self.fail(name, f"expected a list of names, found {short(value)}")
        for item in value:
            if item not in known:
                self.fail(name, f"unknown name {item}, {expected(str(item), known)}")
        return [str(item) for item in value]

    def texts_by_name(self, name: str) -> dict[str, Field]:
        """A map of texts, with the place of each."""
        value = self.data[name]
        if not isinstance(value, CommentedMap) or not value or not all(isinstance(item, str) for item in value.values()):
            self.fail(name, f"expected a map of names to texts, found {short(value)}")
        return {str(key): _field(self.path, self.lines, value, key) for key in value}

    def known_texts(self, name: str) -> dict[str, str]:
        """The assumptions: known names, each with a sentence."""
        fields = self.texts_by_name(name)
        for key, field in fields.items():
            if key not in ASSUMPTIONS:
                raise InvariantError(f"{field.origin.place(1, 1)}: {name}: unknown assumption {key}, {expected(key, ASSUMPTIONS)}")
        return {key: " ".join(str(field.value).split()) for key, field in fields.items()}


def _field(path: str, lines: Sequence[str], data: CommentedMap, name: str) -> Field:
    line, column = data.lc.value(name)
    start = lines[line][column : column + 1] if line < len(lines) else ""
    if start in ("|", ">"):  # the text begins on the next line, indented
        following = next((text for text in lines[line + 1 :] if text.strip()), "")
        return Field(data[name], Origin(path, line + 1, len(following) - len(following.lstrip())))
    return Field(data[name], Origin(path, line, column + (start in ("'", '"'))))


def read(path: Path, required: Sequence[str], optional: Sequence[str], instead: Mapping[str, Sequence[str]] | None = None) -> Document:
    """Reads a file with exactly these fields. `instead`: what a kind requires instead of `cel`. Raises `InvariantError`."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InvariantError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise InvariantError(f"{path}: {len(raw)} bytes, expected an invariant of at most {MAX_BYTES}")
    try:
        text = raw.decode()
        data = YAML(typ="rt").load(text)
    except UnicodeDecodeError:
        raise InvariantError(f"{path}: not UTF-8 text") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise InvariantError(f"{where}: not YAML: {error.problem}") from None
    except YAMLError as error:
        raise InvariantError(f"{path}: not YAML: {error}") from None
    if not isinstance(data, CommentedMap):
        found = "an empty file" if data is None else type(data).__name__
        raise InvariantError(f"{path}:1: expected an invariant with the fields {', '.join(required)}, found {found}")
    document = Document(str(path), text.splitlines(), data)
    for kind, fields in (instead or {}).items():
        optional = (*optional, *fields)
        if data.get("kind") == kind:
            required, optional = [*(name for name in required if name != "cel"), *fields], (*optional, "cel")
    _check(document, data, required, optional)
    return document


def _check(document: Document, data: Mapping[Any, Any], required: Sequence[str], optional: Sequence[str]) -> None:
    for name in data:
        if name not in required and name not in optional:
            document.fail(name, f"unknown field, {expected(str(name), (*required, *optional))}")
    for name in required:
        if name not in data:
            raise InvariantError(f"{document.path}:1: the field {name} is missing")
    for name in ("cel", "when", "goal"):
        if name in data and not isinstance(data[name], str):
            document.fail(name, f"expected an expression, found {short(data[name])}")
