"""YAML and JSON text to a tree of values that know where they stand, with limits, because the files come from others.

Scalars are read as the Kubernetes tools read them (YAML 1.1: `yes` and `on` are booleans). Nothing is ever constructed from a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from dra_spec.resources.problems import ManifestError, Problem, Where

MAX_BYTES = 10 * 1024 * 1024
MAX_NODES = 500_000  # values in a file, after aliases are followed
MAX_ALIASES = 1_000
MAX_DEPTH = 64

_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_NULL = {"", "~", "null", "Null", "NULL"}
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[1-9][0-9_]*|0)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+][0-9]+)?", re.ASCII)
_TEMPLATE = "this is a Helm or Go template, not a manifest: render it first (helm template ...)"
_TAG = "tag:yaml.org,2002:"


@attrs.frozen(eq=False)
class Node:
    """A value: kind is map, list, str, int, float, bool or null. A float keeps its text, so that quantities stay exact.

    `value`: dict of Node, tuple of Node, str, int, str, bool, None. `keys`: for a map, where each key stands. `weight`: number of
    values below and including this one.
    """

    kind: str
    value: Any
    line: int
    column: int
    text: str = ""
    block: bool = False
    keys: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    weight: int = 1

    def get(self, key: str) -> Node | None:
        return self.value.get(key) if self.kind == "map" else None

    def with_value(self, value: dict[str, Node], keys: Mapping[str, tuple[int, int]] | None = None) -> Node:
        """A map at the same place with other content; keys that are new stand where their value stands."""
        known = dict(self.keys) | dict(keys or {})
        return attrs.evolve(self, value=value, keys={k: known.get(k, (v.line, v.column)) for k, v in value.items()})

    def plain(self) -> Any:
        """The value as JSON would have it (a float as its text)."""
        if self.kind == "map":
            return {k: v.plain() for k, v in self.value.items()}
        if self.kind == "list":
            return [v.plain() for v in self.value]
        return self.value

    def at(self, path: str) -> Node:
        """The value at a field path such as `spec.devices.requests[0].name`; where the path leaves the tree, the last value on it."""
        node = self
        for name, index in re.findall(r"([^.\[\]]+)|\[([^\]]+)\]", path):
            if name:
                step = node.get(name)
            elif node.kind == "list" and index.isdigit():
                step = node.value[int(index)] if int(index) < len(node.value) else None
            else:
                step = node.get(index)
            if step is None:
                return node
            node = step
        return node

    def describe(self) -> str:
        """What stands there, in words for a message."""
        if self.kind == "map":
            return "a mapping"
        if self.kind == "list":
            return "a list"
        if self.kind == "null":
            return "nothing (null)"
        if self.kind == "str":
            return f"the string {self.value[:60]!r}"
        names = {"int": "the number", "float": "the number", "bool": "the boolean"}
        return f"{names[self.kind]} {self.text}"


def read_documents(text: str, file: str) -> tuple[Node, ...]:
    """All documents of a text, empty ones left out. Raises ManifestError (DRA101 to DRA108)."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _error("DRA104", f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB", Where(file))
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")) and not text.lstrip("\ufeff \t\r\n").startswith("{{"):
        # Tabs are legal between JSON tokens and not in YAML; inside JSON strings they cannot occur.
        text = text.replace("\t", " ")
    builder = _Builder(file)
    try:
        events = YAML(typ="safe", pure=True).parse(text.removeprefix("\ufeff"))
        documents = tuple(builder.documents(events))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Where(file, mark.line + 1, mark.column + 1) if mark else Where(file)
        raise _error(
            "DRA102" if "{{" in text else "DRA101", _TEMPLATE if "{{" in text else f"not YAML: {error.problem or error.context}", where
        ) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise _error("DRA101", f"not YAML: {str(error).splitlines()[0]}", Where(file)) from None
    except ManifestError as error:
        if "{{" in text and error.problems[0].code == "DRA103":
            raise _error("DRA102", _TEMPLATE, error.problems[0].where) from None
        raise
    return documents


def _error(code: str, message: str, where: Where) -> ManifestError:
    return ManifestError([Problem(code, message, where)])


class _Builder:
    """Events to nodes. Counts what an alias would unfold to before it follows it, so that a bomb costs nothing."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.aliases = 0
        self.nodes = 0
        self.anchors: dict[str, Node | None] = {}

    def documents(self, events: Iterator[Any]) -> Iterator[Node]:
        for event in events:
            if isinstance(event, DocumentStartEvent):
                self.anchors = {}
                node = self.node(next(events), events, 0)
                if node.kind != "null":
                    yield node

    def fail(self, code: str, message: str, event: Any) -> ManifestError:
        return _error(code, message, Where(self.file, event.start_mark.line + 1, event.start_mark.column + 1))

    def count(self, weight: int, event: Any) -> None:
        self.nodes += weight
        if self.nodes > MAX_NODES:
            raise self.fail("DRA105", f"more than {MAX_NODES} values once aliases are followed: refused", event)

    def node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.fail("DRA106", f"nested deeper than {MAX_DEPTH} levels: refused", event)
        if isinstance(event, AliasEvent):
            return self.alias(event)
        anchor = event.anchor
        if anchor:
            self.anchors[anchor] = None
        if isinstance(event, ScalarEvent):
            node = self.scalar(event)
        elif isinstance(event, SequenceStartEvent):
            node = self.sequence(event, events, depth)
        elif isinstance(event, MappingStartEvent):
            node = self.mapping(event, events, depth)
        else:  # pragma: no cover - the parser yields nothing else here
            raise self.fail("DRA101", "not YAML", event)
        if anchor:
            self.anchors[anchor] = node
        return node

    def alias(self, event: Any) -> Node:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self.fail("DRA105", f"more than {MAX_ALIASES} aliases: refused", event)
        if event.anchor not in self.anchors:
            raise self.fail("DRA101", f"alias *{event.anchor} has no anchor before it", event)
        node = self.anchors[event.anchor]
        if node is None:
            raise self.fail("DRA105", f"alias *{event.anchor} stands inside its own anchor: refused", event)
        self.count(node.weight, event)
        return node

    def sequence(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.count(1, event)
        self.check_tag(event, "seq")
        items: list[Node] = []
        while not isinstance(step := next(events), SequenceEndEvent):
            items.append(self.node(step, events, depth + 1))
        mark = event.start_mark
        return Node("list", tuple(items), mark.line + 1, mark.column + 1, weight=1 + sum(i.weight for i in items))

    def mapping(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        self.count(1, event)
        self.check_tag(event, "map")
        value: dict[str, Node] = {}
        keys: dict[str, tuple[int, int]] = {}
        merged: list[Node] = []
        while not isinstance(step := next(events), MappingEndEvent):
            if not isinstance(step, ScalarEvent):
                raise self.fail("DRA103", "a key must be a plain word", step)
            key = step.value
            content = self.node(next(events), events, depth + 1)
            if key == "<<" and not step.style:
                merged += content.value if content.kind == "list" else [content]
                continue
            if key in value:
                raise self.fail("DRA107", f"the key {key!r} occurs twice in this mapping (first on line {keys[key][0]})", step)
            value[key] = content
            keys[key] = (step.start_mark.line + 1, step.start_mark.column + 1)
        for other in merged:
            if other.kind != "map":
                raise self.fail("DRA103", "'<<' takes a mapping or a list of mappings", event)
            for key, content in other.value.items():
                if key not in value:
                    value[key], keys[key] = content, other.keys[key]
        mark = event.start_mark
        return Node("map", value, mark.line + 1, mark.column + 1, keys=keys, weight=1 + sum(v.weight for v in value.values()))

    def check_tag(self, event: Any, expected: str) -> None:
        tag = str(event.tag) if event.tag else ""
        if tag not in ("", "!", _TAG + expected):
            raise self.fail("DRA108", f"the tag {tag.removeprefix(_TAG)!r} is not accepted: manifests are plain data", event)

    def scalar(self, event: Any) -> Node:
        self.count(1, event)
        tag = str(event.tag).removeprefix(_TAG) if event.tag else ""
        if tag not in ("", "!", "str", "int", "float", "bool", "null"):
            self.check_tag(event, "str")
        text: str = event.value
        if event.style == '"':
            text = text.encode("utf-16", "surrogatepass").decode(
                "utf-16", "replace"
            )  # JSON writes characters beyond the BMP as two escapes
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if tag in ("str", "!") or (event.style and not tag):
            kind: str = "str"
            value: Any = text
        else:
            kind, value = _resolve(text)
            if tag and kind != tag and not (tag == "float" and kind == "int"):
                raise self.fail("DRA103", f"{text!r} is tagged {tag!r} and is not one", event)
        return Node(kind, value, line, column, text=text, block=event.style in ("|", ">"))


def _resolve(text: str) -> tuple[str, Any]:
    if text in _NULL:
        return "null", None
    if text in _TRUE or text in _FALSE:
        return "bool", text in _TRUE
    if _INT.fullmatch(text):
        digits = text.replace("_", "")
        body = digits.lstrip("+-").lower()
        base = 16 if body.startswith("0x") else 2 if body.startswith("0b") else 8 if body.startswith("0") and len(body) > 1 else 10
        if len(digits) > 40:
            return "str", text
        return "int", int(digits, base)
    if _FLOAT.fullmatch(text):
        return "float", text
    return "str", text
