"""Macros: calls that become other expressions. Source: CEL language definition, section Macros; cel-go ext (comprehensions, bindings,
lists) and optional library for the further ones."""

from __future__ import annotations

from dra_spec.selectors.lexer import CelSyntaxError
from dra_spec.selectors.tree import ACCU, Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, clone

_UNUSED = "#unused"
_SORT_INPUT = "@__sortBy_input__"


def expand(call: Call) -> Node:
    """The call itself if it is no macro. Raises CelSyntaxError for a macro that is used wrongly."""
    name, args = call.function, call.args
    if call.target is None:
        return _has(call) if name == "has" and len(args) == 1 else call
    if name == "bind" and len(args) == 3 and isinstance(call.target, Ident) and call.target.name == "cel":
        return _let(call, args[0], args[1], args[2])
    if name in ("optMap", "optFlatMap") and len(args) == 2:
        return _optional(call)
    if name == "sortBy" and len(args) == 2:
        return _sort_by(call)
    shape = (name, len(args))
    if shape in _QUANTIFIERS:
        return _quantifier(call, _QUANTIFIERS[shape])
    if shape in _BUILDERS:
        return _builder(call, _BUILDERS[shape])
    return call


# name and number of arguments -> number of variables
_QUANTIFIERS = {(name, n): n - 1 for name in ("all", "exists", "exists_one", "existsOne") for n in (2, 3)}
_BUILDERS = {
    ("map", 2): 1,
    ("map", 3): 1,
    ("filter", 2): 1,
    **{(name, n): 2 for name in ("transformList", "transformMap", "transformMapEntry") for n in (3, 4)},
}


def _has(call: Call) -> Node:
    (argument,) = call.args
    if not isinstance(argument, Select):
        raise CelSyntaxError("has() needs a field, as in has(a.b)", argument.pos, "bad-has-argument")
    return Select(call.pos, argument.operand, argument.field, test=True)


def _name(node: Node) -> str:
    if not isinstance(node, Ident):
        raise CelSyntaxError("expected a variable name", node.pos, "bad-macro-variable")
    return node.name


def _variables(call: Call, count: int) -> tuple[str, str]:
    names = [_name(a) for a in call.args[:count]]
    if len(set(names)) < count:
        raise CelSyntaxError(f"the variable {names[0]!r} is declared twice", call.args[1].pos, "bad-macro-variable")
    if "__result__" in names:
        raise CelSyntaxError("__result__ is no name for a variable", call.pos, "bad-macro-variable")
    return names[0], names[1] if count == 2 else ""


def _quantifier(call: Call, count: int) -> Node:
    var, var2 = _variables(call, count)
    pos, predicate = call.pos, call.args[-1]

    def accu() -> Node:
        return Ident(pos, ACCU)

    start: Node
    condition: Node
    step: Node
    result: Node = accu()
    if call.function == "all":
        start, condition = Literal(pos, True), Call(pos, "@not_strictly_false", [accu()])
        step = Call(pos, "_&&_", [accu(), predicate])
    elif call.function == "exists":
        start, condition = Literal(pos, False), Call(pos, "@not_strictly_false", [Call(pos, "!_", [accu()])])
        step = Call(pos, "_||_", [accu(), predicate])
    else:
        start, condition = Literal(pos, 0), Literal(pos, True)
        step = Call(pos, "_?_:_", [predicate, Call(pos, "_+_", [accu(), Literal(pos, 1)]), accu()])
        result = Call(pos, "_==_", [accu(), Literal(pos, 1)])
    assert call.target is not None
    return Fold(pos, call.function, call.target, var, var2, ACCU, start, condition, step, result)


def _builder(call: Call, count: int) -> Node:
    var, var2 = _variables(call, count)
    pos, last = call.pos, call.args[-1]
    filtered = call.args[count] if len(call.args) == count + 2 or call.function == "filter" else None

    def accu() -> Node:
        return Ident(pos, ACCU)

    start: Node = ListNode(pos, [])
    if call.function == "filter":
        step: Node = Call(pos, "_+_", [accu(), ListNode(pos, [call.args[0]])])
    elif call.function in ("map", "transformList"):
        step = Call(pos, "_+_", [accu(), ListNode(pos, [last])])
    else:
        start = MapNode(pos, [])
        step = Call(pos, "cel.@mapInsert", [accu(), Ident(pos, var), last] if call.function == "transformMap" else [accu(), last])
    if filtered is not None:
        step = Call(pos, "_?_:_", [filtered, step, accu()])
    assert call.target is not None
    return Fold(pos, call.function, call.target, var, var2, ACCU, start, Literal(pos, True), step, accu())


def _let(call: Call, variable: Node, value: Node, body: Node) -> Fold:
    name, pos = _name(variable), call.pos
    return Fold(pos, call.function, ListNode(pos, []), _UNUSED, "", name, value, Literal(pos, False), Ident(pos, name), body)


def _optional(call: Call) -> Node:
    assert call.target is not None
    pos = call.pos
    bound: Node = _let(call, call.args[0], Call(pos, "value", [], clone(call.target)), call.args[1])
    if call.function == "optMap":
        bound = Call(pos, "optional.of", [bound])
    return Call(pos, "_?_:_", [Call(pos, "hasValue", [], call.target), bound, Call(pos, "optional.none", [])])


def _sort_by(call: Call) -> Node:
    if not isinstance(call.target, ListNode | Select | Ident | Fold | Call):
        raise CelSyntaxError("sortBy() needs a list", call.pos, "bad-macro-variable")
    pos = call.pos
    keys = expand(Call(pos, "map", call.args, Ident(pos, _SORT_INPUT)))
    ordered = Call(pos, "@sortByAssociatedKeys", [keys], Ident(pos, _SORT_INPUT))
    return _let(call, Ident(pos, _SORT_INPUT), call.target, ordered)
