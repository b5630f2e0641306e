"""The typed syntax tree of an expression: what the checker makes, and what is compiled, split, graded and explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from dra_spec.properties.errors import Span
from dra_spec.properties.schema import Type


@attrs.frozen(eq=False)
class Node:
    """A piece of the expression with its static type."""

    span: Span
    type: Type


@attrs.frozen(eq=False)
class Literal(Node):
    value: bool | int | str | None


@attrs.frozen(eq=False)
class World(Node):
    """The world itself; `claims` is its field."""


@attrs.frozen(eq=False)
class Var(Node):
    """The variable of an enclosing macro; `index` is its place in the environment."""

    name: str
    index: int


@attrs.frozen(eq=False)
class Field(Node):
    target: Node
    name: str


@attrs.frozen(eq=False)
class Key(Node):
    """`map.key` or `map["key"]`."""

    target: Node
    key: Node


@attrs.frozen(eq=False)
class Index(Node):
    target: Node
    index: Node


@attrs.frozen(eq=False)
class Has(Node):
    of: Node


@attrs.frozen(eq=False)
class Not(Node):
    of: Node


@attrs.frozen(eq=False)
class Neg(Node):
    of: Node


@attrs.frozen(eq=False)
class Binary(Node):
    """A comparison, `in`, or arithmetic."""

    op: str
    left: Node
    right: Node


@attrs.frozen(eq=False)
class And(Node):
    items: Sequence[Node]


@attrs.frozen(eq=False)
class Or(Node):
    items: Sequence[Node]


@attrs.frozen(eq=False)
class Cond(Node):
    test: Node
    yes: Node
    no: Node


@attrs.frozen(eq=False)
class ListOf(Node):
    items: Sequence[Node]


@attrs.frozen(eq=False)
class MapOf(Node):
    pairs: Sequence[tuple[Node, Node]]


@attrs.frozen(eq=False)
class Call(Node):
    """size, startsWith, endsWith, contains or matches."""

    function: str
    args: Sequence[Node]


@attrs.frozen(eq=False)
class Macro(Node):
    """all, exists, exists_one, filter or map over `target`, with `body` evaluated for each element as variable `name`."""

    kind: str
    target: Node
    name: str
    index: int
    body: Node


def children(node: Node) -> Iterator[Node]:
    """The direct parts of a node."""
    for field in attrs.fields(type(node)):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from (item,) if isinstance(item, Node) else item


def walk(node: Node) -> Iterator[Node]:
    """The node and all its parts, outer first."""
    yield node
    for child in children(node):
        yield from walk(child)
