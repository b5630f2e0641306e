"""Why an expression is false on a world, in words: which objects, and the innermost parts that decide, with their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dra_spec.properties import nodes as n
from dra_spec.properties.cel import Environment, Program, compile_node, plain
from dra_spec.properties.errors import EvaluationError, NotInWorld
from dra_spec.properties.schema import ListType, ObjectType
from dra_spec.properties.values import Thing

SHOWN = 4  # elements and witnesses listed, the rest is counted


def explain(program: Program, env: Environment, binding: Mapping[str, str] | None = None) -> list[str]:
    """Lines that say why an expression is false. `binding`: of these variables of `all`, only the objects with these names."""
    return _Explainer(program, binding or {}).because(program.root, list(env), False)


class _Explainer:
    def __init__(self, program: Program, binding: Mapping[str, str]) -> None:
        self._program, self._binding = program, binding

    def because(self, node: n.Node, env: Environment, truth: bool) -> list[str]:
        if isinstance(node, n.Not):
            return self.because(node.of, env, not truth)
        if isinstance(node, (n.And, n.Or)):
            deciding = isinstance(node, n.Or)
            parts = [item for item in node.items if truth is not deciding or self._is(item, env, truth)]
            return [line for item in parts for line in self.because(item, env, truth)]
        if isinstance(node, n.Cond):
            chosen = node.yes if self._is(node.test, env, True) else node.no
            return [*self.because(node.test, env, chosen is node.yes), *self.because(chosen, env, truth)]
        if isinstance(node, n.Macro) and node.kind in ("all", "exists"):
            return self._quantifier(node, env, truth)
        return [f"{self._program.source(node)} is {_word(truth)}{self._values(node, env)}"]

    def _quantifier(self, node: n.Macro, env: Environment, truth: bool) -> list[str]:
        items = list(compile_node(node.target)(env))
        if node.kind == "all" and node.name in self._binding and isinstance(node.target.type, ListType) and node.target.type.key:
            items = [item for item in items if item.get(node.target.type.key) == self._binding[node.name]]
        if truth is (node.kind == "all"):  # no single element decides
            names = [_label(item, node.target) for item in items]
            of = f"{self._program.source(node.target)} = {_listed(names)}" if names else f"{self._program.source(node.target)} is empty"
            return [f"{self._program.source(node)} is {_word(truth)} ({of}{self._values(node.body, env, node.index)})"]
        lines: list[str] = []
        witnesses = [item for item in items if self._is(node.body, self._with(env, node, item), truth)]
        for item in witnesses[:SHOWN]:
            lines.append(f"for {node.name} = {_label(item, node.target)}:")
            lines += [f"  {line}" for line in self.because(node.body, self._with(env, node, item), truth)]
        if len(witnesses) > SHOWN:
            lines.append(f"and for {len(witnesses) - SHOWN} more")
        return lines

    def _with(self, env: Environment, node: n.Macro, item: Any) -> Environment:
        inner = list(env)
        inner[node.index] = item
        return inner

    def _is(self, node: n.Node, env: Environment, truth: bool) -> bool:
        try:
            return bool(compile_node(node)(list(env))) is truth
        except EvaluationError:
            return False

    def _values(self, node: n.Node, env: Environment, unbound: int | None = None) -> str:
        """The values of what is selected, in brackets; of the body of a macro (whose variable is `unbound`) after a semicolon."""
        found: dict[str, str] = {}
        for path in _paths(node, frozenset() if unbound is None else frozenset({unbound})):
            try:
                value = plain(compile_node(path)(list(env)))
            except (EvaluationError, NotInWorld):
                continue
            if not _has_thing(value):
                found[self._program.source(path)] = json.dumps(value)
        listed = ", ".join(f"{text} = {value}" for text, value in found.items())
        if unbound is not None:
            return f"; {listed}" if listed else ""
        return f" ({listed})" if listed else ""


def _paths(node: n.Node, inner: frozenset[int]) -> list[n.Node]:
    """The longest selections in an expression that do not depend on a variable bound inside of it."""
    if isinstance(node, n.Macro):
        return _paths(node.target, inner) + _paths(node.body, inner | {node.index})
    selects = isinstance(node, (n.Field, n.Key, n.Index)) or (isinstance(node, n.Call) and node.function == "size")
    simple = isinstance(node, n.Var) and not isinstance(node.type, ObjectType)
    if selects or simple:
        if any(isinstance(part, n.Var) and part.index in inner for part in n.walk(node)):
            return []
        if not isinstance(node.type, ObjectType) and not (isinstance(node.type, ListType) and isinstance(node.type.element, ObjectType)):
            return [node]
    return [path for child in n.children(node) for path in _paths(child, inner)]


def _has_thing(value: Any) -> bool:
    return isinstance(value, Thing) or (isinstance(value, list) and any(map(_has_thing, value)))


def _label(item: Any, target: n.Node) -> str:
    """`claim c1` for an object with a name, the value for anything else."""
    if not isinstance(item, Thing):
        return json.dumps(plain(item))
    type_ = target.type
    if isinstance(type_, ListType) and isinstance(type_.element, ObjectType):
        key = type_.key or next(iter(type_.element.fields))
        return f"{type_.element.name} {item.get(key)}"
    return "an object"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _word(truth: bool) -> str:
    return "true" if truth else "false"
