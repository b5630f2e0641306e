"""Reading a YAML file strictly: every value knows its file, line and field, every mistake becomes one located `InputError`.

Used for the files that this project defines (models, traces); Kubernetes manifests are read by `dra_spec.resources`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BYTES = 20_000_000  # a trace of some thousand steps has less


@attrs.frozen
class Place:
    """A position in a file; line counts from 1, 0 stands for the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class InputError(Exception):
    """Bad input or a bad argument: where, and one clear sentence. Ends in exit code 2."""

    def __init__(self, message: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place


def nearest(name: str, known: Iterable[str]) -> str:
    """`"; did you mean X?"`, or the list of what is known, or nothing if nothing is."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""


@attrs.frozen
class Field:
    """A node of a YAML document with its place and the path of fields that leads to it."""

    node: Node
    file: str
    path: str = ""

    @property
    def place(self) -> Place:
        return Place(self.file, int(self.node.start_mark.line) + 1)

    def error(self, message: str) -> InputError:
        return InputError(f"{self.path}: {message}" if self.path else message, self.place)

    def expected(self, what: str) -> InputError:
        return self.error(f"expected {what}, found {self._found()}")

    def _found(self) -> str:
        if isinstance(self.node, MappingNode):
            return "a mapping"
        if isinstance(self.node, SequenceNode):
            return "a list"
        return repr(self.node.value) if self.node.value != "" else "nothing"

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, SequenceNode)

    def items(self) -> Iterator[tuple[Field, Field]]:
        """Key and value fields of a mapping, in order; a repeated key is an error."""
        if not isinstance(self.node, MappingNode):
            raise self.expected("a mapping")
        seen: set[str] = set()
        for key_node, value_node in self.node.value:
            key = Field(key_node, self.file, self.path)
            if not isinstance(key_node, ScalarNode):
                raise key.expected("a name as key")
            name = str(key_node.value)
            if name in seen:
                raise key.error(f"the key {name!r} is there twice")
            seen.add(name)
            yield key, Field(value_node, self.file, f"{self.path}.{name}" if self.path else name)

    def mapping(self, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Field]:
        """The fields of a mapping, by name; unknown and missing ones are errors, null counts as absent."""
        allowed, found = tuple(known), dict[str, Field]()
        for key, value in self.items():
            name = str(key.node.value)
            if name not in allowed:
                raise key.error(f"unknown field {name!r}{nearest(name, allowed)}")
            if not value.is_null:
                found[name] = value
        for name in required:
            if name not in found:
                raise self.error(f"the field {name!r} is missing")
        return found

    def sequence(self) -> list[Field]:
        if not isinstance(self.node, SequenceNode):
            raise self.expected("a list")
        return [Field(item, self.file, f"{self.path}[{i}]") for i, item in enumerate(self.node.value)]

    def string(self) -> str:
        if not isinstance(self.node, ScalarNode) or self.is_null:
            raise self.expected("text")
        return str(self.node.value)

    def integer(self, least: int | None = None) -> int:
        if not isinstance(self.node, ScalarNode) or not re.fullmatch(r"[-+]?[0-9]+", str(self.node.value)):
            raise self.expected("a whole number")
        value = int(self.node.value)
        if least is not None and value < least:
            raise self.error(f"expected a number of at least {least}, found {value}")
        return value

    def number(self) -> float:
        try:
            value = float(self.string())
        except ValueError:
            raise self.expected("a number") from None
        if not 0 < value < float("inf"):
            raise self.error(f"expected a number above 0, found {self.string()}")
        return value

    def boolean(self) -> bool:
        if not isinstance(self.node, ScalarNode) or self.node.value not in ("true", "false"):
            raise self.expected("true or false")
        return bool(self.node.value == "true")

    def choice(self, known: Iterable[str], what: str) -> str:
        """One of `known`; otherwise an error that names the nearest."""
        names = tuple(known)
        name = self.string()
        if name not in names:
            raise self.error(f"unknown {what} {name!r}{nearest(name, names)}")
        return name

    def plain(self) -> object:
        """The value as dicts, lists, text, numbers, booleans and None."""
        if isinstance(self.node, MappingNode):
            return {str(key.node.value): value.plain() for key, value in self.items()}
        if isinstance(self.node, SequenceNode):
            return [item.plain() for item in self.sequence()]
        if self.is_null:
            return None
        if self.node.tag == "tag:yaml.org,2002:bool":
            return self.boolean()
        if self.node.tag == "tag:yaml.org,2002:int":
            return self.integer()
        return str(self.node.value)


def read_text(path: Path, name: str | None = None) -> str:
    """The text of a file, or an `InputError` that says why it cannot be read."""
    shown = name or str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"larger than {MAX_BYTES // 1_000_000} MB", Place(shown))
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", Place(shown)) from None
    except UnicodeDecodeError:
        raise InputError("is not text in UTF-8", Place(shown)) from None


def parse(text: str, file: str) -> Field:
    """The only document of a YAML text. Anchors are refused: nothing here needs them, and they can blow up a small file."""
    if not text.strip():
        raise InputError("the file is empty", Place(file))
    try:
        documents = [node for node in YAML(typ="safe", pure=True).compose_all(text) if node is not None]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(f"not YAML: {error.problem or error.context}", Place(file, mark.line + 1 if mark else 0)) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"not YAML: {str(error).splitlines()[0] if str(error) else 'nested too deeply'}", Place(file)) from None
    if len(documents) != 1:
        raise InputError(f"expected one YAML document, found {len(documents)}", Place(file))
    _refuse_aliases(documents[0], file)
    return Field(documents[0], file)


def _refuse_aliases(root: Node, file: str) -> None:
    """An alias is a node that is met twice; composing a document does not unfold them, so this is safe on any input."""
    seen: set[int] = set()
    rest = [root]
    while rest:
        node = rest.pop()
        if id(node) in seen:
            raise InputError("YAML aliases (*name) are not allowed here", Place(file, int(node.start_mark.line) + 1))
        seen.add(id(node))
        if isinstance(node, MappingNode):
            rest += [part for pair in node.value for part in pair]
        elif isinstance(node, SequenceNode):
            rest += node.value
