"""The evaluator against the C++ runtime of CEL, on expressions that both know: the same value, or an error in both."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dra_spec.selectors import SelectorDevice, SelectorError, SelectorSyntaxError, compile_selector

cel = pytest.importorskip("cel_expr_python.cel")
DEVICE = SelectorDevice("d/p/x", "d", {}, {})
ENVIRONMENT = cel.NewEnv(variables={})

INTS = st.one_of(st.integers(-3, 9).map(str), st.sampled_from(["9223372036854775807", "-9223372036854775808"]))
STRINGS = st.sampled_from(["''", "'a'", "'ab'", "'b'", "'größe'", "'7'"])


def ints(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return INTS
    inner = ints(depth - 1)
    return st.one_of(
        INTS,
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        strings(depth - 1).map(lambda s: f"size({s})"),
        strings(depth - 1).map(lambda s: f"int({s})"),
        st.tuples(lists(depth - 1), inner).map(lambda p: f"{p[0]}[{p[1]}]"),
        st.tuples(bools(depth - 1), inner, inner).map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})"),
    )


def strings(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return STRINGS
    inner = strings(depth - 1)
    return st.one_of(STRINGS, st.tuples(inner, inner).map(lambda p: f"({p[0]} + {p[1]})"), ints(depth - 1).map(lambda i: f"string({i})"))


def lists(depth: int) -> st.SearchStrategy[str]:
    plain = st.lists(ints(0), max_size=3).map(lambda items: f"[{', '.join(items)}]")
    if not depth:
        return plain
    inner = lists(depth - 1)
    return st.one_of(
        plain,
        st.tuples(inner, inner).map(lambda p: f"({p[0]} + {p[1]})"),
        st.tuples(inner, ints(depth - 1)).map(lambda p: f"{p[0]}.map(x, x + {p[1]})"),
        st.tuples(inner, ints(depth - 1)).map(lambda p: f"{p[0]}.filter(x, x > {p[1]})"),
    )


def bools(depth: int) -> st.SearchStrategy[str]:
    simple = st.sampled_from(["true", "false"])
    if not depth:
        return simple
    inner, orders = bools(depth - 1), st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        simple,
        st.tuples(ints(depth - 1), orders, ints(depth - 1)).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(strings(depth - 1), orders, strings(depth - 1)).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda b: f"!{b}"),
        st.tuples(lists(depth - 1), st.sampled_from(["all", "exists", "exists_one"]), ints(depth - 1)).map(
            lambda p: f"{p[0]}.{p[1]}(x, x / {p[2]} > 0)"
        ),
        st.tuples(ints(depth - 1), lists(depth - 1)).map(lambda p: f"({p[0]} in {p[1]})"),
        st.tuples(strings(depth - 1), st.sampled_from(["startsWith", "endsWith", "contains"]), strings(depth - 1)).map(
            lambda p: f"{p[0]}.{p[1]}({p[2]})"
        ),
        st.tuples(lists(depth - 1), lists(depth - 1)).map(lambda p: f"{p[0]} == {p[1]}"),
    )


def theirs(expression: str) -> object:
    try:
        result = ENVIRONMENT.compile(expression).eval(data={})
    except RuntimeError:
        return "error"
    return "error" if result.type().name() == "ERROR" else result.value()


def ours(expression: str) -> object:
    try:
        answer = compile_selector(expression).matches(DEVICE)
    except SelectorSyntaxError as error:
        return error.kind
    return "error" if isinstance(answer, SelectorError) else answer


@settings(max_examples=300, deadline=None)
@given(bools(3))
def test_same_answers(expression: str) -> None:
    try:
        compile_selector(expression)
    except SelectorSyntaxError:
        return  # a constant that fails is found when compiling, also in a branch that is never taken
    assume(" in [])" not in expression)  # Kubernetes answers this without looking at the left side
    assert ours(expression) == theirs(expression)
