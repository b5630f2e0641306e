"""Selections and look-ups behind a value: `a.b`, `a[b]`, `a.?b`, `a[?b]`, has(a.b)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dra_spec.selectors.runtime import NONE, Fault, Map, Optional, is_number, show, type_name
from dra_spec.selectors.tree import Call, Node, Select

if TYPE_CHECKING:
    from dra_spec.selectors.frame import Closure, Frame

LOOK_UPS = ("_[_]", "_[?_]", "_?._")


@attrs.frozen
class Step:
    """`key`: a constant, or the closure that gives the key."""

    key: Any
    constant: bool
    optional: bool


def chain_base(node: Node) -> Node:
    """What all the selections of an expression stand behind."""
    while True:
        if isinstance(node, Select) and node.constant is None:
            node = node.operand
        elif isinstance(node, Call) and node.function in LOOK_UPS:
            node = node.args[0]
        else:
            return node


def chain_steps(node: Node, constant: Callable[[Node], tuple[bool, Any]], closure: Callable[[Node], Closure]) -> Sequence[Step]:
    """The selections, the first one first."""
    steps: list[Step] = []
    while True:
        if isinstance(node, Select) and node.constant is None:
            steps.append(Step(node.field, True, False))
            node = node.operand
        elif isinstance(node, Call) and node.function in LOOK_UPS:
            known, value = constant(node.args[1])
            steps.append(Step(value if known else closure(node.args[1]), known, node.function != "_[_]"))
            node = node.args[0]
        else:
            return steps[::-1]


def follow(value: Any, steps: Sequence[Step], frame: Frame, *, test: bool = False) -> Any:
    """Raises Fault. `test`: whether the last step would find something, for has()."""
    optional = False
    if isinstance(value, Optional) and steps:
        if not value.present:
            return False if test else value
        value, optional = value.value, True
    for index, step in enumerate(steps):
        if test and index == len(steps) - 1:
            return look_up(value, step.key, may_lack=True) is not None
        key = step.key if step.constant else step.key(frame)
        optional = optional or step.optional
        if not optional:
            frame.meter.charge(1)
            value = look_up(value, key)
            if isinstance(value, Optional) and index + 1 < len(steps):
                if not value.present:
                    return False if test else value
                value, optional = value.value, True
            continue
        found = look_up(value, key, may_lack=True)
        if found is None:
            return False if test else NONE
        frame.meter.charge(1)
        value = found.value
    return Optional(value, True) if optional else value


def look_up(value: Any, key: Any, *, may_lack: bool = False) -> Any:
    """The element; with `may_lack` an Optional, or None if it is not there. Raises Fault."""
    if isinstance(value, Map):
        if may_lack:
            return Optional(value[key], True) if key in value or value.default is not None else None
        return value[key]
    if isinstance(value, list):
        index = _index(key)
        if 0 <= index < len(value):
            return Optional(value[index], True) if may_lack else value[index]
        if may_lack:
            return None
        raise Fault("index-out-of-bounds", f"index out of bounds: {index} of {len(value)}")
    if may_lack:
        return None
    raise Fault("no-such-key", f"no such key: {show(key)} in a {type_name(value)}")


def _index(key: Any) -> int:
    if isinstance(key, str | bool):
        raise Fault("unsupported-type", f"a {type_name(key)} is no index of a list")
    if is_number(key) and int(key) == key:
        return int(key)
    raise Fault("invalid-argument", f"{show(key)} is no index of a list")
