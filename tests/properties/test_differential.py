"""Closures against cel-python's own evaluation, on handwritten and on generated expressions; and splitting against the whole."""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_spec.explorer.model import Truth
from dra_spec.properties.cel import load
from dra_spec.properties.errors import EvaluationError, NotStatic
from dra_spec.properties.grade import grader
from dra_spec.properties.invariant import Promise, load_all
from dra_spec.properties.schema import BOOL, INT, STRING, TOP_LEVEL, UID, WORLD, ListType, Nullable, ObjectType, Type
from dra_spec.properties.split import split
from dra_spec.properties.values import Items, Thing
from dra_spec.properties.world import PlainWorld, problems

POOL = ("a", "b", "c1", "n1", "Succeeded", "")
NO_VALUE = "no value"
STRINGS = ListType(STRING)


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Anything that fits the schema."""
    if isinstance(type_, ObjectType):
        return st.fixed_dictionaries({name: values(field) for name, field in type_.fields.items()})
    if isinstance(type_, Nullable):
        return st.none() | values(type_.of)
    if isinstance(type_, ListType):
        key = type_.key
        unique = None if isinstance(type_.element, ObjectType) and key is None else (lambda item: item[key] if key else item)
        return st.lists(values(type_.element), max_size=3, unique_by=unique)
    return {BOOL: st.booleans(), INT: st.integers(-1, 3)}.get(type_, st.sampled_from(POOL))


WORLDS = values(WORLD)


CEL_PYTHON = celpy.Environment()  # made here, as it changes Python's recursion limit


def by_cel_python(text: str, world: dict[str, Any]) -> Any:
    program = CEL_PYTHON.program(CEL_PYTHON.compile(text))
    try:
        return as_python(program.evaluate({name: json_to_cel(value) for name, value in world.items()}))
    except Exception:  # cel-python lets Python's own exceptions through for some errors
        return NO_VALUE


def as_python(value: Any) -> Any:
    if isinstance(value, list):
        return [as_python(item) for item in value]
    if isinstance(value, celpy.celtypes.BoolType):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    return None if value is None else str(value)


def by_closures(text: str, world: dict[str, Any]) -> Any:
    try:
        return load(text).evaluate(PlainWorld(world))
    except EvaluationError:
        return NO_VALUE


# -- generated expressions


class Writer:
    """Writes an expression of a type, choice by choice. `safe`: without operations that can be an error, for the bodies of filter, map and
    exists_one, out of which cel-python lets errors escape."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def _pick(self, options: Any) -> Any:
        return self._draw(st.sampled_from(options))

    def write(self, type_: Type, scope: dict[str, Type], depth: int, safe: bool = False) -> str:
        if depth == 0 or self._pick([False, False, False, True]):
            return self._leaf(type_, scope)
        if type_ == BOOL:
            return self._bool(scope, depth, safe)
        if type_ == INT:
            return self._int(scope, depth, safe)
        return self._string(scope, depth, safe) if type_ == STRING else self._strings(scope, depth, safe)

    def _bool(self, scope: dict[str, Type], depth: int, safe: bool) -> str:
        sub = lambda type_: self.write(type_, scope, depth - 1, safe)  # noqa: E731
        form = self._pick(["int", "string", "list", "in", "call", "not", "and", "or", "cond", "all", "exists", "exists_one", "null"])
        if form in ("all", "exists", "exists_one"):
            return self._macro(form, BOOL, scope, depth, safe or form == "exists_one")
        if form == "not":
            return f"!({sub(BOOL)})"
        if form == "and":
            return f"({sub(BOOL)} && {sub(BOOL)})"
        if form == "or":
            return f"({sub(BOOL)} || {sub(BOOL)})"
        if form == "cond":
            return f"({sub(BOOL)} ? {sub(BOOL)} : {sub(BOOL)})"
        if form == "int":
            return f"({sub(INT)} {self._pick(['<', '<=', '>', '>=', '==', '!='])} {sub(INT)})"
        if form == "string":
            return f"({sub(STRING)} {self._pick(['<', '>=', '==', '!='])} {sub(STRING)})"
        if form == "list":
            return f"({sub(STRINGS)} {self._pick(['==', '!='])} {sub(STRINGS)})"
        if form == "call":
            function, argument = self._pick(["startsWith", "endsWith", "contains", "matches"]), self._pick(["", "a", "c"])
            subject = self._leaf(STRING, scope) if function == "contains" else sub(STRING)  # theirs lacks contains after +
            return f"{subject}.{function}({argument!r})"
        nullable = paths(Nullable(STRINGS), scope)
        if form == "null" and nullable:
            path = self._pick(nullable)
            return f"{path} == null" if safe else f"({sub(STRING)} in {path})"
        return f"({sub(STRING)} in {sub(STRINGS)})"

    def _int(self, scope: dict[str, Type], depth: int, safe: bool) -> str:
        sub = lambda type_: self.write(type_, scope, depth - 1, safe)  # noqa: E731
        operator = self._pick(["+", "-", "*", "size", "length", "neg", *("" if safe else "/%")])
        if operator in ("size", "length"):
            return f"size({sub(STRINGS)})" if operator == "size" else f"{sub(STRING)}.size()"
        return f"-({sub(INT)})" if operator == "neg" else f"({sub(INT)} {operator} {sub(INT)})"

    def _string(self, scope: dict[str, Type], depth: int, safe: bool) -> str:
        sub = lambda type_: self.write(type_, scope, depth - 1, safe)  # noqa: E731
        form = self._pick(["+", "cond"] if safe else ["+", "cond", "index"])
        if form == "index":
            return f"({sub(STRINGS)})[{self._pick([0, 1])}]"
        return f"({sub(STRING)} + {sub(STRING)})" if form == "+" else f"({sub(BOOL)} ? {sub(STRING)} : {sub(STRING)})"

    def _strings(self, scope: dict[str, Type], depth: int, safe: bool) -> str:
        sub = lambda type_: self.write(type_, scope, depth - 1, safe)  # noqa: E731
        form = self._pick(["list", "+", "filter", "map"])
        if form == "list":
            return f"[{sub(STRING)}, {sub(STRING)}]"
        if form == "+":
            return f"({sub(STRINGS)} + {sub(STRINGS)})"
        if form == "map":
            return self._macro("map", STRING, scope, depth, True)
        return f"({sub(STRINGS)}).filter(x{depth}, {self.write(BOOL, {**scope, f'x{depth}': STRING}, depth - 1, True)})"

    def _macro(self, kind: str, body: Type, scope: dict[str, Type], depth: int, safe: bool) -> str:
        path, listed = self._pick([(path, found) for path, found in selections(scope) if isinstance(found, ListType)])
        return f"{path}.{kind}(x{depth}, {self.write(body, {**scope, f'x{depth}': listed.element}, depth - 1, safe)})"

    def _leaf(self, type_: Type, scope: dict[str, Type]) -> str:
        constants = {BOOL: ["true", "false"], INT: ["0", "1", "-2", "3"], STRING: ["'a'", "'c1'", "''"]}.get(type_, ["[]", "['a']"])
        found = paths(type_, scope)
        return str(self._pick(found if found and self._pick([True, True, False]) else constants))


def paths(type_: Type, scope: dict[str, Type]) -> list[str]:
    return [path for path, found in selections(scope) if found == type_]


def selections(scope: dict[str, Type]) -> list[tuple[str, Type]]:
    """Top-level lists, variables and what can be selected of them."""
    found: list[tuple[str, Type]] = [(name, WORLD.fields[name]) for name in TOP_LEVEL]
    todo = list(scope.items())
    while todo:
        path, type_ = todo.pop()
        found.append((path, type_))
        if isinstance(type_, ObjectType):
            todo += [(f"{path}.{name}", field) for name, field in type_.fields.items() if field != UID]
    return found


@st.composite
def expressions(draw: Any) -> str:
    return Writer(draw).write(BOOL, {}, 4)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions(), WORLDS)
def test_generated_expressions_agree_with_cel_python(text: str, world: dict[str, Any]) -> None:
    assert by_closures(text, world) == by_cel_python(text, world)


HANDWRITTEN = [
    "7 / 2 == 3 && -7 / 2 == -3 && -7 % 3 == -1 && 7 % -3 == 1",
    "1 / 0 == 1",
    "1 / 0 == 1 || true",
    "true || 1 / 0 == 1",
    "false && 1 / 0 == 1",
    "1 / 0 == 1 && false",
    "1 / 0 == 1 || false",
    "1 / 0 == 1 && true",
    "[1, 0].all(x, 1 / x > 5)",
    "[1, 0].all(x, 1 / x == 1)",
    "[0, 1].exists(x, 1 / x == 1)",
    "[0, 2].exists(x, 1 / x == 1)",
    "[1, 2, 3].exists_one(x, x > 2) && ![1, 2, 3].exists_one(x, x > 1)",
    "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x * 2) == [2, 4]",
    "[1, 2, 3][2] == 3",
    "[1, 2, 3][3] == 3",
    "{'a': 1}['a'] == 1 && {'a': 1}.a == 1 && 'a' in {'a': 1} && size({'a': 1}) == 1",
    "{'a': 1}['b'] == 1",
    "has({'a': 1}.a) && !has({'a': 1}.b)",
    "{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])",
    "9223372036854775807 + 1 == 0",
    "-9223372036854775807 - 2 == 0",
    "'abc'.matches('^a.c$') && !'abc'.matches('^b')",
    "'abc'.matches('(')",
    "size('äö') == 2 && 'a' + 'b' == 'ab' && [1] + [2] == [1, 2]",
    "1 - -1 == 2 && 1 -1 == 0 && !(!true)",
    "r'\\n' == '\\\\n' && \"a\" == 'a' && '\\x41' == 'A'",
    "(1 / 0 == 1 ? true : false) || true",
    "1 < 2 ? 'a' == 'a' : 1 / 0 == 1",
    "claims.all(c, c.nodes == null || 'n1' in c.nodes)",
    "claims.exists(c, 'n1' in c.nodes)",
    "[[1], []].all(x, x == [] || x[0] == 1)",
    "[] == [] && [] != ['a'] && null == null",
]
SAMPLE = {"claims": [{"name": "c1", "nodes": None}, {"name": "c2", "nodes": ["n1"]}], "pods": [], "nodes": [], "schedulers": []}


@pytest.mark.parametrize("text", HANDWRITTEN)
def test_handwritten_expressions_agree_with_cel_python(text: str) -> None:
    assert by_closures(text, SAMPLE) == by_cel_python(text, SAMPLE)


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("claims.all(c, c.nodes != null || c.name == 'c1')", True, NO_VALUE),  # their `list != null` has no overload
        ("[1, 2][-1] == 2", NO_VALUE, True),  # their index counts from the end
        ("[0].map(x, 1 / x) == [1] || true", True, NO_VALUE),  # their error escapes
        ("-9223372036854775808 % -1 == 0", NO_VALUE, True),  # in CEL that overflows, as the quotient does
        ("('a' + 'b').contains('a')", True, NO_VALUE),  # their sum of strings is not a CEL string
    ],
)
def test_deliberate_differences(text: str, ours: Any, theirs: Any) -> None:
    assert by_closures(text, SAMPLE) == ours
    assert by_cel_python(text, SAMPLE) == theirs


# -- splitting


class Fixed(Thing):
    """What of a plain world is fixed: the names of the objects of its top-level lists."""

    def __init__(self, world: PlainWorld) -> None:
        self._world = world

    def get(self, field: str) -> Any:
        return FixedItems(self._world.get(field))


class FixedItems(Items):
    def __init__(self, items: Items) -> None:
        self._items = items

    def __iter__(self) -> Any:
        raise NotStatic("elements")

    def __len__(self) -> int:
        raise NotStatic("size")

    def __contains__(self, item: object) -> bool:
        raise NotStatic("membership")

    def universe(self) -> Any:
        return self._items.universe()

    def peek(self, name: str) -> Any:
        return OnlyName(name)


class OnlyName(Thing):
    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, field: str) -> Any:
        if field != "name":
            raise NotStatic(field)
        return self._name


SPLITTABLE = {name: invariant.program for name, invariant in load_all().items() if invariant.kind is Promise.STATE} | {
    text: load(text)
    for text in (
        "claims.all(c, !c.allocated || pods.all(p, p.deleting || p.name in c.reservedFor)) && pods.all(p, p.running)",
        "claims.all(a, claims.all(b, !(a.name < b.name) || a.owner != b.owner))",
        "nodes.all(n, n.plugins.all(l, l.running)) || claims.exists(c, c.deleting) || pods.all(p, p.node != '')",
        "claims.all(c, c.nodes == null || pods.all(p, p.node in c.nodes))",
        "claims.exists(c, c.deleting)",
        "size(claims) < 2 && claims.exists_one(c, c.allocated)",
    )
}


@pytest.mark.parametrize("name", sorted(SPLITTABLE))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(WORLDS)
def test_the_instances_together_say_what_the_whole_says(name: str, world: dict[str, Any]) -> None:
    program = SPLITTABLE[name]
    assert problems(world) == []
    absent = {section: [n for n in POOL if n not in {item["name"] for item in world[section]}] for section in TOP_LEVEL}
    thing = PlainWorld(world, absent=absent)
    whole = grader(program.root)(program.environment(thing))
    truths = [part.truth(thing) for part in split(program, Fixed(thing))]
    together = Truth.FALSE if Truth.FALSE in truths else max(truths, default=Truth.TRIVIAL)
    assert together is whole


def test_what_is_split_and_what_is_not() -> None:
    world = PlainWorld(
        {"claims": [], "pods": [], "nodes": [], "schedulers": []}, absent={"claims": ["c1", "c2", "c3"], "pods": ["p1", "p2"]}
    )

    def bindings(text: str) -> list[dict[str, str]]:
        return [dict(part.binding) for part in split(load(text), Fixed(world))]

    pairs = [{"a": a, "b": b} for a, b in (("c1", "c2"), ("c1", "c3"), ("c2", "c3"))]
    assert bindings("claims.all(a, claims.all(b, a.name >= b.name || !a.allocated || b.allocated))") == pairs
    assert bindings("claims.all(a, claims.all(b, !(a.name < b.name) || b.allocated))") == pairs
    assert len(bindings("claims.all(c, c.deleting || pods.all(p, p.running))")) == 6
    assert bindings("claims.all(c, c.finalizer && c.allocated)") == [{"c": c} for c in ("c1", "c1", "c2", "c2", "c3", "c3")]
    whole = [{}]
    assert bindings("claims.exists(c, c.deleting)") == whole
    assert bindings("!claims.all(c, c.deleting)") == whole
    assert bindings("size(claims.filter(c, c.deleting)) < 2") == whole
    assert bindings("claims.all(c, c.devices[0] == 'd')") == whole  # an error in one could be absorbed by another
    assert bindings("claims.all(c, 'n1' in c.nodes)") == whole
    assert len(bindings("claims.all(c, c.nodes == null || 'n1' in c.nodes)")) == 3
    assert len(bindings("claims.all(c, c.nodes != null && 'n1' in c.nodes)")) == 6
