"""Compiling and evaluating device selectors."""

from __future__ import annotations

import re
from typing import Any

import attrs

from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.selectors import syntax
from dra_spec.selectors.device import SelectorDevice
from dra_spec.selectors.environment import CHECKER, COMPARABLE, DOMAIN, EVALUATOR, FIELDS, NOT_ENCODED, plain, variables
from dra_spec.selectors.errors import SelectorError, UnsupportedFeature, syntax_error
from dra_spec.selectors.values import HIDDEN_FIELD

_LOCATED = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']+)'")
_OVERLOAD = re.compile(r"no matching overload for '([^']+)'")
_CODE = re.compile(r"^[A-Z_]+: ")
_ORDERINGS = ("_<_", "_<=_", "_>_", "_>=_")
_NUMBERS = re.compile(r"\((int|uint|double), (int|uint|double)\)")
_EQUALITIES = ("_==_", "_!=_")
TOO_DEEP = "a CEL selector that is nested very deeply"
_MAPS = ("attributes", "capacity")


@attrs.frozen(eq=False)
class Selector:
    """A compiled selector. A selector that fails on a device gives a SelectorError."""

    expression: str
    where: Where
    _program: Any = attrs.field(repr=False)

    def matches(self, device: SelectorDevice) -> bool | SelectorError:
        """Whether the device matches, or why that cannot be said (missing attribute, wrong type, ...).

        Such an error aborts the scheduling attempt upstream (k8s.io/dynamic-resource-allocation cel, DeviceMatches). Raises
        UnsupportedFeature where the runtime gives up (its budget is not Kubernetes' cost limit).
        """
        try:
            result = self._program.eval(data=variables(device))
        except RuntimeError as error:
            raise UnsupportedFeature(f"a CEL selector that the evaluator cannot finish ({_CODE.sub('', str(error))})", self.where) from None
        value = result.value()
        if result.type().name() == "ERROR":
            return SelectorError(_CODE.sub("", str(value)).strip(), self.expression, device.name)
        if not isinstance(value, bool):
            return SelectorError(f"the result is {plain(value)!r}, expected true or false", self.expression, device.name)
        return value


def compile_selector(expression: str, where: Where = NOWHERE) -> Selector:
    """Compile an expression with the types that Kubernetes declares.

    Raises SelectorSyntaxError (a ManifestError, code DRA130) with line, column and a caret, and UnsupportedFeature for a function that
    Kubernetes knows and this tool does not.
    """
    try:
        checked = CHECKER.compile(expression)
    except RuntimeError as error:
        raise _compile_error(expression, where, str(error)) from None
    packed, parsed = _parse(expression, where)
    nodes = list(syntax.walk(parsed.expr))  # a list, because the walk must not enter what is put in below
    for node in nodes:
        _inspect(node, expression, where)
    result = checked.return_type().name()
    if result not in ("BOOL", "DYN"):
        raise syntax_error(expression, where, 1, 1, f"the expression gives {result.lower()}, expected bool")
    optionals = _uses_optionals(nodes)
    if optionals:
        _keep_optionals_away(nodes, result, where)
    for node in nodes:
        _default_map(node)
    for node in nodes:
        _strict_equality(node, optionals)
    return Selector(expression, where, EVALUATOR.deserialize(syntax.pack(packed, parsed)))


def _parse(expression: str, where: Where) -> tuple[Any, Any]:
    try:
        return syntax.unpack(EVALUATOR.compile(expression, disable_check=True).serialize())
    except syntax.TOO_DEEP:
        raise UnsupportedFeature(TOO_DEEP, where) from None


def _compile_error(expression: str, where: Where, text: str) -> Exception:
    if "max recursion depth" in text:  # 32 here, 250 in Kubernetes
        return UnsupportedFeature(TOO_DEEP, where)
    found = _LOCATED.search(text)
    if not found:
        return syntax_error(expression, where, 1, 1, _CODE.sub("", text.splitlines()[0]))
    line, column, message = int(found.group(1)), int(found.group(2)), found.group(3)
    undeclared = _UNDECLARED.search(message)
    name = undeclared.group(1) if undeclared else ""
    overload = _OVERLOAD.search(message)
    if overload and overload.group(1) in _ORDERINGS and _NUMBERS.search(message):
        return UnsupportedFeature("a comparison of an int with a double in a CEL selector", where)
    if overload and overload.group(1) in NOT_ENCODED:  # known for strings, say, and not for lists
        return UnsupportedFeature(f"the CEL function {overload.group(1)!r} with these arguments in a selector", where)
    if name:
        # the name may be a variable of a macro that is not encoded, so look at all calls
        calls = {n.call_expr.function for n in syntax.walk(_parse(expression, where)[1].expr) if n.WhichOneof("kind") == "call_expr"}
        missing = sorted(NOT_ENCODED & (calls | {name, name.split(".")[0]}))
        if missing:
            return UnsupportedFeature(f"the CEL function or macro {missing[0]!r} in a selector", where)
    if name == "device":
        return UnsupportedFeature("a CEL selector that uses `device` as a whole", where)
    if name.startswith("device."):
        message = f"device has no field {name.split('.')[1]!r}, expected one of {', '.join(FIELDS)}"
    elif undeclared:
        message = f"{name!r} is not known"
    return syntax_error(expression, where, line, column, message)


def _inspect(node: Any, expression: str, where: Where) -> None:
    """Refuse what the evaluator would get wrong."""
    kind = node.WhichOneof("kind")
    if kind == "select_expr" and node.select_expr.field == HIDDEN_FIELD:
        raise syntax_error(expression, where, 1, 1, f"there is no field {HIDDEN_FIELD!r}")
    if kind == "select_expr" and node.select_expr.test_only and node.select_expr.operand.ident_expr.name == "device":
        raise UnsupportedFeature("has(device. ...) in a CEL selector", where)
    if kind == "comprehension_expr" and "device" in (node.comprehension_expr.iter_var, node.comprehension_expr.iter_var2):
        raise UnsupportedFeature("a CEL variable that is called 'device'", where)
    if kind == "call_expr" and node.call_expr.function in ("_[?_]", "_?._") and _is_map_of_domains(node.call_expr.args[0]):
        raise UnsupportedFeature("an optional look-up of a domain in a CEL selector", where)


def _is_map_of_domains(node: Any) -> bool:
    if node.WhichOneof("kind") != "select_expr":
        return False
    select = node.select_expr
    return not select.test_only and select.field in _MAPS and select.operand.ident_expr.name == "device"


def _default_map(node: Any) -> None:
    """`device.attributes[x]` and `device.attributes.x` become a call that gives an empty map for a domain that the device lacks."""
    kind = node.WhichOneof("kind")
    if kind == "call_expr" and node.call_expr.function == "_[_]" and _is_map_of_domains(node.call_expr.args[0]):
        node.call_expr.function = DOMAIN
    elif kind == "select_expr" and not node.select_expr.test_only and _is_map_of_domains(node.select_expr.operand):
        operand, name = type(node)(), node.select_expr.field
        operand.CopyFrom(node.select_expr.operand)
        node.call_expr.function = DOMAIN  # setting it clears the select
        node.call_expr.args.add().CopyFrom(operand)
        literal = node.call_expr.args.add()
        # an id of its own is not needed: ids only serve error positions and checked types
        literal.const_expr.string_value = name


def _uses_optionals(nodes: list[Any]) -> bool:
    return any(
        (n.WhichOneof("kind") == "ident_expr" and n.ident_expr.name == "optional")
        or (n.WhichOneof("kind") == "call_expr" and n.call_expr.function in ("_[?_]", "_?._"))
        or (n.WhichOneof("kind") == "list_expr" and len(n.list_expr.optional_indices) > 0)
        for n in nodes
    )


def _keep_optionals_away(nodes: list[Any], result: str, where: Where) -> None:
    """An optional that reaches Python ends the process (cel-expr-python 0.1), so refuse all ways on which one could get there."""
    for node in nodes:
        kind = node.WhichOneof("kind")
        literal = kind == "struct_expr" or (
            kind == "list_expr" and any(e.WhichOneof("kind") != "const_expr" for e in node.list_expr.elements)
        )
        if literal or result != "BOOL" or (kind == "call_expr" and node.call_expr.function in ("includes", "dyn")):
            raise UnsupportedFeature("optional values in a CEL selector together with literals, includes() or dyn()", where)


def _strict_equality(node: Any, optionals: bool) -> None:
    """`a == b` becomes `comparable(a, b) ? a == b : false`, because the runtime calls a version unequal to a string and Kubernetes fails.

    Operands that hold an equality themselves are left alone: their value is a bool, and copying them would double at each level.
    `optionals`: only operands that cannot be optional are touched.
    """
    if node.WhichOneof("kind") != "call_expr" or node.call_expr.function not in _EQUALITIES:
        return
    left, right = node.call_expr.args
    if left.WhichOneof("kind") == "const_expr" or any(
        inner.WhichOneof("kind") == "call_expr" and inner.call_expr.function in (*_EQUALITIES, COMPARABLE)
        for side in (left, right)
        for inner in syntax.walk(side)
    ):
        return
    if optionals and not (_is_access(left) and (right.WhichOneof("kind") == "const_expr" or _is_access(right))):
        return
    equality, guard, otherwise = type(node)(), type(node)(), type(node)()
    equality.CopyFrom(node)
    guard.call_expr.function = COMPARABLE
    guard.call_expr.args.extend([left, right])
    otherwise.const_expr.bool_value = False
    node.call_expr.function = "_?_:_"
    del node.call_expr.args[:]
    node.call_expr.args.extend([guard, equality, otherwise])


def _is_access(node: Any) -> bool:
    """`device.attributes[d].x`, `device.attributes[d][x]`, semver(...) or quantity(...)."""
    kind = node.WhichOneof("kind")
    if kind == "select_expr":
        return not node.select_expr.test_only and node.select_expr.operand.call_expr.function == DOMAIN
    if kind != "call_expr":
        return False
    call = node.call_expr
    return call.function in ("semver", "quantity") or (call.function == "_[_]" and call.args[0].call_expr.function == DOMAIN)
