"""Selectors on devices against cel-expr-python and cel-python, on the part of the language that all three have: the same answer.

Both partners get `device` as a plain map. What they lack stays out: the empty map for an unknown domain (only known domains are read),
types of attributes at compile time, `in` an empty list, quantities, versions, optional values.
"""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.resources import Device
from dra_spec.resources.slices import AttributeValue
from dra_spec.selectors import SelectorDevice, SelectorError, compile_selector

DRIVER, OTHER = "gpu.example.com", "rack.example.com"
KINDS = {"numa": "int", "slots": "int", "model": "string", "zone": "string", "ready": "bool"}
CEL_PYTHON = celpy.Environment()

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-2, 3),
    "string": st.sampled_from(["", "a", "a100", "größe"]),
    "bool": st.booleans(),
}


@st.composite
def devices(draw: st.DrawFn) -> tuple[SelectorDevice, dict[str, Any]]:
    """A device as the evaluator takes it, and as a plain map. Each of the two domains has an attribute."""
    attributes = {f"{domain}/name": AttributeValue("string", "x") for domain in (DRIVER, OTHER)}
    plain: dict[str, dict[str, Any]] = {domain: {"name": "x"} for domain in (DRIVER, OTHER)}
    for domain in (DRIVER, OTHER):
        for name, kind in KINDS.items():
            if draw(st.integers(0, 2)):
                value = draw(VALUES[kind])
                attributes[name if domain == DRIVER else f"{domain}/{name}"] = AttributeValue(kind, value)
                plain[domain][name] = value
    device = Device(name="d", attributes=attributes)
    return SelectorDevice.of(DRIVER, "pool", device), {"driver": DRIVER, "attributes": plain}


def read(name: str, domain: str) -> str:
    return f"device.attributes['{domain}'].{name}"


def literal(kind: str) -> st.SearchStrategy[str]:
    return VALUES[kind].map(lambda v: str(v).lower() if isinstance(v, bool) else repr(v))


def named(*kinds: str) -> st.SearchStrategy[tuple[str, str]]:
    """An attribute of one of these kinds, and its domain."""
    return st.tuples(st.sampled_from([n for n, k in KINDS.items() if k in kinds]), st.sampled_from([DRIVER, OTHER]))


ORDERS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
SIMPLE = st.one_of(
    st.tuples(named("int"), ORDERS, literal("int")).map(lambda p: f"{read(*p[0])} {p[1]} {p[2]}"),
    st.tuples(named("string"), ORDERS, literal("string")).map(lambda p: f"{read(*p[0])} {p[1]} {p[2]}"),
    st.tuples(named("string"), st.sampled_from(["startsWith", "endsWith", "contains"]), literal("string")).map(
        lambda p: f"{read(*p[0])}.{p[1]}({p[2]})"
    ),
    named("bool").map(lambda p: f"{read(*p)} == true"),
    named("int", "string", "bool").map(lambda p: f"has({read(*p)})"),
    named("int", "string", "bool").map(lambda p: f"'{p[0]}' in device.attributes['{p[1]}']"),
    st.tuples(named("int"), st.lists(literal("int"), min_size=1, max_size=2)).map(lambda p: f"{read(*p[0])} in [{', '.join(p[1])}]"),
    st.tuples(named("int"), named("int"), literal("int")).map(lambda p: f"{read(*p[0])} + {read(*p[1])} > {p[2]}"),
    named("string").map(lambda p: f"size({read(*p)}) > 1"),
    st.sampled_from(
        [f"device.driver == '{DRIVER}'", "device.driver == 'other'", f"'{OTHER}' in device.attributes", "'none' in device.attributes"]
    ),
)
EXPRESSIONS = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda b: f"!({b})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} ? {p[1]} : {p[2]})"),
    ),
    max_leaves=6,
)


def ours(expression: str, device: SelectorDevice) -> object:
    answer = compile_selector(expression).matches(device)
    return "error" if isinstance(answer, SelectorError) else answer


def by_cel_python(expression: str, device: dict[str, Any]) -> object:
    program = CEL_PYTHON.program(CEL_PYTHON.compile(expression))
    try:
        return bool(program.evaluate({"device": json_to_cel(device)}))
    except Exception:  # it lets Python's own exceptions through for some errors
        return "error"


@settings(max_examples=120, deadline=None)
@given(devices(), EXPRESSIONS)
def test_cel_python_says_the_same(device: tuple[SelectorDevice, dict[str, Any]], expression: str) -> None:
    assert ours(expression, device[0]) == by_cel_python(expression, device[1])


@settings(max_examples=200, deadline=None)
@given(devices(), EXPRESSIONS)
def test_cel_expr_python_says_the_same(device: tuple[SelectorDevice, dict[str, Any]], expression: str) -> None:
    cel = pytest.importorskip("cel_expr_python.cel")
    result = cel.NewEnv(variables={"device": cel.Type.DYN}).compile(expression).eval(data={"device": device[1]})
    theirs = "error" if result.type().name() == "ERROR" else result.value()
    assert ours(expression, device[0]) == theirs
