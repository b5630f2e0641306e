"""Splits an invariant into instances, one per object, so that each looks at few slots.

`claims.all(c, A || pods.all(p, B))` holds if and only if `A || B` holds for each claim and pod; an absent object makes its instance
trivially true. This is done for positive `all` at the top (through `&&` and the last operand of `||`) over lists whose names are fixed,
and only if no part of the expression can be an error, because an error in one instance could have been absorbed by another that is
false. What can be decided from names alone is decided here: of `a.name >= b.name || ...` one instance per pair remains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dra_spec.explorer.model import Truth
from dra_spec.properties import nodes as n
from dra_spec.properties.cel import Closure, Environment, Program, compile_node
from dra_spec.properties.errors import EvaluationError, NotStatic
from dra_spec.properties.grade import Grader, grader
from dra_spec.properties.schema import Nullable
from dra_spec.properties.values import Items, Thing


@attrs.frozen(eq=False)
class Bind:
    """The variable at `index` becomes the element `name` of a list; trivially true if there is none."""

    index: int
    items: Closure
    name: str


@attrs.frozen(eq=False)
class Unless:
    """Trivially true if this holds."""

    test: Closure


@attrs.frozen(eq=False)
class Instance:
    """An invariant for given objects. `binding`: variable -> name of its object; `node`: what remains to be promised of them."""

    binding: Mapping[str, str]
    steps: tuple[Bind | Unless, ...]
    node: n.Node
    size: int
    grade: Grader

    def truth(self, world: Thing) -> Truth:
        """What the instance says of a world. Raises `EvaluationError`."""
        env = self.environment(world)
        return Truth.TRIVIAL if env is None else self.grade(env)

    def environment(self, world: Thing) -> Environment | None:
        """The environment of `node`; None if the instance does not apply."""
        env: Environment = [None] * self.size
        env[0] = world
        for step in self.steps:
            if isinstance(step, Bind):
                env[step.index] = step.items(env).at(step.name)
                if env[step.index] is None:
                    return None
            elif step.test(env):
                return None
        return env


def split(program: Program, static: Thing, quantifiers: int | None = None) -> list[Instance]:
    """The instances of a program. `static`: the world as far as it is fixed; reading more raises `NotStatic`.

    `quantifiers`: split exactly that many outermost `all`, and nothing else (a goal is not the conjunction of the goals of its parts).
    """
    env = program.environment(static)
    splitter = _Splitter(program.size, quantifiers)
    if quantifiers is None and fallible(program.root):
        return [splitter.instance((), {}, program.root)]
    return list(splitter.split(program.root, env, (), {}, 0))


class _Splitter:
    def __init__(self, size: int, quantifiers: int | None) -> None:
        self._size, self._quantifiers = size, quantifiers

    def instance(self, steps: tuple[Bind | Unless, ...], binding: Mapping[str, str], node: n.Node) -> Instance:
        return Instance(dict(binding), steps, node, self._size, grader(node))

    def split(
        self, node: n.Node, env: Environment, steps: tuple[Bind | Unless, ...], binding: Mapping[str, str], depth: int
    ) -> Iterator[Instance]:
        peel = self._quantifiers is None or depth < self._quantifiers
        names = _universe(node, env) if peel else None
        if isinstance(node, n.Macro) and names is not None:
            items = compile_node(node.target)
            for name in names:
                inner = list(env)
                inner[node.index] = items(env).peek(name)
                step = Bind(node.index, items, name)
                yield from self.split(node.body, inner, (*steps, step), {**binding, node.name: name}, depth + 1)
        elif self._quantifiers is None and isinstance(node, n.And):
            for item in node.items:
                yield from self.split(item, env, steps, binding, depth)
        elif self._quantifiers is None and isinstance(node, n.Or):
            yield from self._or(node, env, steps, binding, depth)
        elif known(compile_node(node), env) is not True:
            yield self.instance(steps, binding, node)

    def _or(
        self, node: n.Or, env: Environment, steps: tuple[Bind | Unless, ...], binding: Mapping[str, str], depth: int
    ) -> Iterator[Instance]:
        tests = []
        for item in node.items[:-1]:
            test = compile_node(item)
            value = known(test, env)
            if value is True:
                return
            if value is None:
                tests.append(Unless(test))
        yield from self.split(node.items[-1], env, (*steps, *tests), binding, depth)


def known(closure: Closure, env: Environment) -> Any | None:
    """The value if it does not depend on the state, else None."""
    try:
        return closure(env)
    except (NotStatic, EvaluationError):
        return None


def _universe(node: n.Node, env: Environment) -> tuple[str, ...] | None:
    if not isinstance(node, n.Macro) or node.kind != "all":
        return None
    items = known(compile_node(node.target), env)
    names = items.universe() if isinstance(items, Items) else None
    return None if names is None else tuple(names)


def fallible(node: n.Node, lists: frozenset[str] = frozenset()) -> bool:
    """Whether evaluation can be an error: an index, a key, arithmetic, a pattern, or a list that may be null and was not asked before.

    `X == null || ...` and `X != null && ...` make X safe in the operands after it.
    """
    if isinstance(node, (n.And, n.Or)):
        sign = "==" if isinstance(node, n.Or) else "!="
        safe = lists
        for item in node.items:
            if fallible(item, safe):
                return True
            if isinstance(item, n.Binary) and item.op == sign and isinstance(item.right, n.Literal) and item.right.value is None:
                safe |= {_path(item.left)}
        return False
    if isinstance(node, (n.Index, n.Key, n.Neg)) or (isinstance(node, n.Call) and node.function == "matches"):
        return True
    if isinstance(node, n.Has):
        return False
    if isinstance(node, n.Binary):
        if node.op in "+-*/%" and str(node.type) == "int":
            return True
        if node.op == "in" and isinstance(node.right.type, Nullable) and _path(node.right) not in lists:
            return True
    if isinstance(node, n.Macro) and isinstance(node.target.type, Nullable) and _path(node.target) not in lists:
        return True
    if isinstance(node, n.MapOf):
        return True
    return any(fallible(child, lists) for child in n.children(node))


def _path(node: n.Node) -> str:
    """A text for `variable.field.field`; other expressions get one that equals nothing."""
    if isinstance(node, n.Field):
        return f"{_path(node.target)}.{node.name}"
    if isinstance(node, n.Var):
        return f"{node.name}@{node.index}"
    return "" if isinstance(node, n.World) else f"?{id(node)}"
