"""The syntax tree of an expression. The checker writes `type` and `overloads` into the nodes."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import attrs

from dra_spec.selectors.types import DYN, Type


@attrs.define(eq=False)
class Node:
    """`pos`: offset of the expression's characteristic token in the text."""

    pos: int
    type: Type = attrs.field(init=False, repr=False, default=DYN)

    def children(self) -> Iterator[Node]:
        return iter(())


@attrs.define(eq=False)
class Literal(Node):
    value: object


@attrs.define(eq=False)
class Ident(Node):
    """`constant`: the checker found that the name is a type's."""

    name: str
    constant: Type | None = attrs.field(default=None, init=False)


@attrs.define(eq=False)
class Select(Node):
    """`operand.field`, or `has(operand.field)` if `test`. `constant`: the whole is a type's qualified name."""

    operand: Node
    field: str
    test: bool = False
    constant: Type | None = attrs.field(default=None, init=False)

    def children(self) -> Iterator[Node]:
        yield self.operand


@attrs.define(eq=False)
class Call(Node):
    """A function or operator (named as in the language definition: `_+_`, `_[_]`, `_?._`); `target` for a method."""

    function: str
    args: list[Node]
    target: Node | None = None
    overloads: list[str] = attrs.field(factory=list, init=False, repr=False)

    def children(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.args


@attrs.define(eq=False)
class ListNode(Node):
    items: list[Node]
    optional: frozenset[int] = frozenset()

    def children(self) -> Iterator[Node]:
        yield from self.items


@attrs.define(eq=False)
class MapNode(Node):
    entries: list[tuple[Node, Node]]
    optional: frozenset[int] = frozenset()

    def children(self) -> Iterator[Node]:
        for key, value in self.entries:
            yield key
            yield value


@attrs.define(eq=False)
class Struct(Node):
    message: str
    fields: list[tuple[str, Node]]

    def children(self) -> Iterator[Node]:
        for _, value in self.fields:
            yield value


@attrs.define(eq=False)
class Fold(Node):
    """A macro such as all() or map(): `accu` starts as `start`; for each element while `condition`, it becomes `step`; then `result`.

    `macro` is the name in the text. `bind` is set for cel.bind and optMap, where nothing is iterated.
    """

    macro: str
    range: Node
    var: str
    var2: str
    accu: str
    start: Node
    condition: Node
    step: Node
    result: Node

    @property
    def bind(self) -> bool:
        return self.accu != ACCU

    def children(self) -> Iterator[Node]:
        yield from (self.range, self.start, self.condition, self.step, self.result)


ACCU = "@result"


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, without recursion."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(current.children())))


def clone(node: Node) -> Node:
    """A copy that shares no node with the original."""
    return copy.deepcopy(node)
