"""Expressions as Python closures over lazy values.

Semantics are cel-python's for the subset that parse.py admits (tests compare the two), with these deliberate differences, where cel-python
departs from the CEL specification or evaluates more than the answer needs:

- `||`, `&&`, all and exists stop at the first operand that decides; an error is absorbed by a deciding operand on either side;
- an error inside filter, map or exists_one is an error like any other (cel-python lets it escape from an enclosing `||`);
- an escape that CEL does not know is a mistake in the text (kept as it stands in cel-python), and `in` is no name;
- `list != null` is true (an error in cel-python), and a negative index is an error (counts from the end in cel-python);
- the sum of two strings is a string (in cel-python it has no contains).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from dra_spec.properties import nodes as n
from dra_spec.properties.errors import EvaluationError, InvariantError, Origin, Span, pointed
from dra_spec.properties.parse import parse
from dra_spec.properties.schema import NULL, WORLD, ObjectType, Type
from dra_spec.properties.values import Items, Thing
from dra_spec.selectors.functions_text import BadRegex, compile_regex

MAX_LENGTH = 20_000  # characters of an expression

Environment = list[Any]  # place 0: the world; then one place per nested macro variable
Closure = Callable[[Environment], Any]


@attrs.frozen(eq=False)
class Program:
    """A compiled expression."""

    text: str
    origin: Origin
    root: n.Node
    run: Closure
    size: int

    def source(self, node: n.Node) -> str:
        """The text of a part of the expression, on one line."""
        return " ".join(self.text[node.span.start : node.span.end].split())

    def environment(self, world: Thing) -> Environment:
        env: Environment = [None] * self.size
        env[0] = world
        return env

    def evaluate(self, world: Thing) -> Any:
        """The value on a world. Raises `EvaluationError` if it has none, `NotInWorld` if the world lacks what it reads."""
        return plain(self.run(self.environment(world)))


def load(
    text: str, world: ObjectType = WORLD, origin: Origin | None = None, variables: Mapping[str, tuple[int, Type]] | None = None
) -> Program:
    """Parses, checks and compiles an expression over a world. Raises `InvariantError`."""
    origin = origin or Origin()
    if len(text) > MAX_LENGTH:
        raise InvariantError(pointed(f"{len(text)} characters, expected at most {MAX_LENGTH}", "", origin, 1, 1))
    try:
        root = parse(text, world, origin, variables)
        run = compile_node(root)
    except RecursionError:
        raise InvariantError(pointed("the expression is nested too deeply", "", origin, 1, 1)) from None
    places = [node.index for node in n.walk(root) if isinstance(node, n.Macro)] + [index for index, _ in (variables or {}).values()]
    return Program(text, origin, root, run, 1 + max(places, default=0))


def plain(value: Any) -> Any:
    """A value with lazy lists read; objects stay."""
    if isinstance(value, (Items, list, tuple)):
        return [plain(item) for item in value]
    return value


def compile_node(node: n.Node) -> Closure:
    """The closure of a typed node."""
    return _COMPILERS[type(node)](node)


def _literal(node: n.Literal) -> Closure:
    value = node.value
    return lambda env: value


def _world(node: n.World) -> Closure:
    return operator.itemgetter(0)


def _var(node: n.Var) -> Closure:
    return operator.itemgetter(node.index)


def _field(node: n.Field) -> Closure:
    target, name = compile_node(node.target), node.name
    return lambda env: target(env).get(name)


def _key(node: n.Key) -> Closure:
    target, key, span = compile_node(node.target), compile_node(node.key), node.span

    def run(env: Environment) -> Any:
        mapping, name = target(env), key(env)
        if name not in mapping:
            raise EvaluationError(f"no key {name!r} in a map with {', '.join(map(repr, mapping)) or 'no keys'}", span)
        return mapping[name]

    return run


def _index(node: n.Index) -> Closure:
    target, index, span = compile_node(node.target), compile_node(node.index), node.span

    def run(env: Environment) -> Any:
        items, i = list(_items(target(env), span)), index(env)
        if not 0 <= i < len(items):
            raise EvaluationError(f"index {i} of a list of {len(items)}", span)
        return items[i]

    return run


def _items(value: Any, span: Span) -> Any:
    if value is None:
        raise EvaluationError("null where a list is needed", span)
    return value


def _has(node: n.Has) -> Closure:
    of = compile_node(node.of)

    def run(env: Environment) -> bool:
        try:
            of(env)
        except EvaluationError:
            return False
        return True

    return run


def _not(node: n.Not) -> Closure:
    of = compile_node(node.of)
    return lambda env: not of(env)


def _neg(node: n.Neg) -> Closure:
    of, span = compile_node(node.of), node.span
    return lambda env: _int64(-of(env), span)


def _int64(value: int, span: Span) -> int:
    if not -(2**63) <= value < 2**63:
        raise EvaluationError("integer overflow", span)
    return value


def _divide(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def _binary(node: n.Binary) -> Closure:
    left, right, span, op = compile_node(node.left), compile_node(node.right), node.span, node.op
    if op == "in":
        return lambda env: bool(left(env) in _items(right(env), span))
    if op in ("==", "!=") and NULL in (node.left.type, node.right.type):  # without a look at what is in a list
        return lambda env: ((left(env) is None) and (right(env) is None)) is (op == "==")
    if op == "==":
        return lambda env: bool(plain(left(env)) == plain(right(env)))
    if op == "!=":
        return lambda env: bool(plain(left(env)) != plain(right(env)))
    if op in _COMPARISONS:
        compare = _COMPARISONS[op]
        return lambda env: bool(compare(left(env), right(env)))
    if op == "+" and str(node.type) != "int":
        return lambda env: plain(left(env)) + plain(right(env))
    if op in _INTEGERS:
        compute = _INTEGERS[op]
        return lambda env: _int64(compute(left(env), right(env)), span)

    def divide(env: Environment) -> int:
        a, b = left(env), right(env)
        if b == 0:
            raise EvaluationError("division by zero", span)
        quotient = _int64(_divide(a, b), span)  # where that is too large there is no remainder either
        return quotient if op == "/" else a - b * quotient

    return divide


def _decide(runs: Sequence[Closure], deciding: bool) -> Closure:
    """`||` (deciding: true) and `&&` (deciding: false), with errors absorbed by a deciding operand."""

    def run(env: Environment) -> bool:
        error: EvaluationError | None = None
        for closure in runs:
            try:
                if bool(closure(env)) is deciding:
                    return deciding
            except EvaluationError as found:
                error = error or found
        if error is not None:
            raise error
        return not deciding

    return run


def _and(node: n.And) -> Closure:
    return _decide([compile_node(item) for item in node.items], False)


def _or(node: n.Or) -> Closure:
    return _decide([compile_node(item) for item in node.items], True)


def _cond(node: n.Cond) -> Closure:
    test, yes, no = compile_node(node.test), compile_node(node.yes), compile_node(node.no)
    return lambda env: yes(env) if test(env) else no(env)


def _list_of(node: n.ListOf) -> Closure:
    items = [compile_node(item) for item in node.items]
    return lambda env: [item(env) for item in items]


def _map_of(node: n.MapOf) -> Closure:
    pairs = [(compile_node(key), compile_node(value)) for key, value in node.pairs]
    span = node.span

    def run(env: Environment) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, value in pairs:
            name = key(env)
            if name in made:
                raise EvaluationError(f"the key {name!r} occurs twice", span)
            made[name] = value(env)
        return made

    return run


def _call(node: n.Call) -> Closure:
    args, span = [compile_node(arg) for arg in node.args], node.span
    if node.function == "size":
        return lambda env: _size(args[0](env))
    subject, argument = args
    if node.function == "startsWith":
        return lambda env: bool(subject(env).startswith(argument(env)))
    if node.function == "endsWith":
        return lambda env: bool(subject(env).endswith(argument(env)))
    if node.function == "contains":
        return lambda env: bool(argument(env) in subject(env))

    def matches(env: Environment) -> bool:
        text, pattern = subject(env), argument(env)
        try:
            return compile_regex(pattern).search(text) is not None
        except BadRegex:
            raise EvaluationError(f"not a regular expression: {pattern!r}", span) from None

    return matches


def _size(value: Any) -> int:
    return 0 if value is None else len(value)  # the size of null is 0 in cel-python


def _macro(node: n.Macro) -> Closure:
    target, body, index, span = compile_node(node.target), compile_node(node.body), node.index, node.span
    if node.kind in ("all", "exists"):
        deciding = node.kind == "exists"
        lookup = _lookup(node)

        def quantify(env: Environment) -> bool:
            error: EvaluationError | None = None
            items = _items(target(env), span)
            for item in items if lookup is None else lookup(env, items):
                env[index] = item
                try:
                    if bool(body(env)) is deciding:
                        return deciding
                except EvaluationError as found:
                    error = error or found
            if error is not None:
                raise error
            return not deciding

        return quantify

    def select(env: Environment) -> list[tuple[Any, Any]]:
        pairs = []
        for item in _items(target(env), span):
            env[index] = item
            pairs.append((item, body(env)))
        return pairs

    if node.kind == "filter":
        return lambda env: [item for item, wanted in select(env) if wanted]
    if node.kind == "map":
        return lambda env: [plain(value) for _, value in select(env)]
    return lambda env: sum(wanted for _, wanted in select(env)) == 1


def _lookup(node: n.Macro) -> Callable[[Environment, Any], Any] | None:
    """`L.exists(x, x.name == E && ...)` and `L.all(x, x.name != E || ...)` need only the element called E: the value is the same, and the
    other elements are not looked at. None if the body has another form."""
    chain, sign = (n.And, "==") if node.kind == "exists" else (n.Or, "!=")
    first = node.body.items[0] if isinstance(node.body, chain) else node.body
    key = getattr(node.target.type, "key", None)
    if key is None or not isinstance(first, n.Binary) or first.op != sign:
        return None
    for name, wanted in ((first.left, first.right), (first.right, first.left)):
        is_key = isinstance(name, n.Field) and name.name == key and isinstance(name.target, n.Var) and name.target.index == node.index
        if is_key and not any(isinstance(part, n.Var) and part.index == node.index for part in n.walk(wanted)) and not _fallible(wanted):
            return _found(compile_node(wanted))
    return None


def _fallible(node: n.Node) -> bool:
    return not all(isinstance(part, (n.Literal, n.Var, n.Field, n.World)) for part in n.walk(node))


def _found(wanted: Closure) -> Callable[[Environment, Any], Any]:
    def run(env: Environment, items: Any) -> Any:
        universe = items.universe() if isinstance(items, Items) else None
        if universe is None:
            return items
        name = wanted(env)
        element = items.at(name) if name in universe else None
        return () if element is None else (element,)

    return run


_COMPILERS: Mapping[type[n.Node], Callable[[Any], Closure]] = {
    n.Literal: _literal,
    n.World: _world,
    n.Var: _var,
    n.Field: _field,
    n.Key: _key,
    n.Index: _index,
    n.Has: _has,
    n.Not: _not,
    n.Neg: _neg,
    n.Binary: _binary,
    n.And: _and,
    n.Or: _or,
    n.Cond: _cond,
    n.ListOf: _list_of,
    n.MapOf: _map_of,
    n.Call: _call,
    n.Macro: _macro,
}
