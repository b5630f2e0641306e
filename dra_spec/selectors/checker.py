"""The type checker: gives each node its type and each call the overloads that may serve it.

Source: the CEL language definition, section Gradual type checking; where it leaves a choice, cel-go v0.29.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dra_spec.selectors import types as t
from dra_spec.selectors.declarations import Overload, functions
from dra_spec.selectors.environments import Environment
from dra_spec.selectors.tree import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, Struct, walk
from dra_spec.selectors.types import Substitution, Type

_TYPE_NAMES: dict[str, Type] = {
    **{x.kind: x for x in (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES)},
    **{str(x): x for x in (t.NULL, t.DURATION, t.TIMESTAMP, t.IP, t.CIDR, t.DEVICE)},
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "type": t.type_of(t.DYN),
    t.OPTIONAL: t.optional_of(t.DYN),
}


@attrs.frozen
class Mistake:
    """What the checker found wrong. `kind`: the error class, for example no-matching-overload."""

    kind: str
    message: str
    pos: int


def check(root: Node, environment: Environment) -> list[Mistake]:
    """Writes types and overloads into the nodes; returns what is wrong, in the order of the text's evaluation."""
    checker = _Checker(environment)
    checker.visit(root)
    if not checker.mistakes:
        for node in walk(root):
            node.type = checker.subst.apply(node.type, to_dyn=True)
        checker.mistakes.extend(_mixed_literals(root))
    return checker.mistakes


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.subst = Substitution()
        self.mistakes: list[Mistake] = []
        self._scopes: list[dict[str, Type]] = [{"device": t.DEVICE}]

    def _wrong(self, kind: str, message: str, node: Node) -> Type:
        self.mistakes.append(Mistake(kind, message, node.pos))
        return t.ERROR

    def visit(self, node: Node) -> Type:
        node.type = self._type(node)
        return node.type

    def _type(self, node: Node) -> Type:
        if isinstance(node, Literal):
            return literal_type(node.value)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Struct):
            return self._struct(node)
        assert isinstance(node, Fold)
        return self._fold(node)

    def _look_up(self, name: str) -> Type | None:
        return next((scope[name] for scope in reversed(self._scopes) if name in scope), None)

    def _ident(self, node: Ident) -> Type:
        found = self._look_up(node.name)
        if found is not None:
            return found
        if node.name in _TYPE_NAMES:
            node.constant = _TYPE_NAMES[node.name]
            return t.type_of(node.constant)
        return self._wrong("undeclared-reference", f"{node.name!r} is not known", node)

    def _select(self, node: Select) -> Type:
        name = qualified_name(node)
        if name is not None and name in _TYPE_NAMES and not node.test:
            node.constant = _TYPE_NAMES[name]
            return t.type_of(node.constant)
        result = self._field(node, node.operand, node.field, optional=False)
        return t.BOOL if node.test else self.subst.apply(result)

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        outer = self.subst.apply(self.visit(operand))
        inner, was_optional = t.unwrap_optional(outer)
        if inner.kind == "map":
            result = inner.params[1]
        elif inner.kind == "struct":
            result = self._struct_field(node, inner, field)
        elif inner.kind == "param":
            self.subst.assign([t.DYN], [inner])
            result = t.DYN
        elif t.is_dyn(inner):
            result = t.DYN
        else:
            self._wrong("no-field-selection", f"a value of type {inner} has no fields", node)
            result = t.DYN
        return t.optional_of(result) if was_optional or optional else result

    def _struct_field(self, node: Node, struct: Type, field: str) -> Type:
        if struct != t.DEVICE:
            return self._wrong("undefined-field", f"{struct} has no field {field!r}", node)
        fields = self.environment.fields
        if field not in fields:
            return self._wrong("undefined-field", f"device has no field {field!r}, expected one of {', '.join(fields)}", node)
        return fields[field]

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.args[1]
            assert isinstance(field, Literal)
            node.overloads = ["select_optional_field"]
            self.visit(field)
            return self.subst.apply(self._field(node, node.args[0], str(field.value), optional=True))
        for argument in node.args:
            self.visit(argument)
        target = node.target
        if target is not None:
            prefix = qualified_name(target)
            if prefix is not None and f"{prefix}.{node.function}" in functions():
                node.function, node.target, target = f"{prefix}.{node.function}", None, None
        if target is not None:
            self.visit(target)
        overloads = self.environment.overloads(node.function)
        if overloads is None:
            name = "sortBy" if node.function == "@sortByAssociatedKeys" else node.function
            return self._wrong("undeclared-reference", f"{name!r} is not known", node)
        return self._resolve(node, overloads)

    def _resolve(self, node: Call, overloads: Sequence[Overload]) -> Type:
        if node.function in ("_&&_", "_||_"):
            node.overloads = [overloads[0].id]
            return self._logical(node)
        operands = [*([node.target] if node.target is not None else []), *node.args]
        given = [o.type for o in operands]
        result: Type | None = None
        for overload in overloads:
            if overload.method != (node.target is not None):
                continue
            fresh = Substitution({p: self.subst.fresh() for p in overload.params})
            if not self.subst.assign(given, [fresh.apply(a) for a in overload.args]):
                continue
            node.overloads.append(overload.id)
            returned = self.subst.apply(fresh.apply(overload.result))
            if result is None:
                result = returned
            elif result.kind not in ("dyn", "any") and returned != result:
                result = t.DYN
        if result is None:
            shown = ", ".join(str(self.subst.apply(g, to_dyn=True)) for g in given)
            return self._wrong("no-matching-overload", f"{node.function!r} cannot take ({shown})", node)
        return result

    def _logical(self, node: Call) -> Type:
        for argument in node.args:
            if not self.subst.assign([argument.type], [t.BOOL]):
                return self._wrong("type-mismatch", f"expected bool, found {self.subst.apply(argument.type, to_dyn=True)}", argument)
        return t.BOOL

    def _join(self, known: Type | None, node: Node, found: Type) -> Type:
        if known is None:
            return found
        return t.most_general(known, found) if self.subst.assign([known], [found]) else t.DYN

    def _element(self, node: Node, *, optional: bool) -> Type:
        found = self.visit(node)
        if not optional:
            return found
        inner, was_optional = t.unwrap_optional(found)
        if not was_optional and not t.is_dyn(found):
            self._wrong("type-mismatch", f"expected an optional value, found {found}", node)
        return inner

    def _list(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, item in enumerate(node.items):
            element = self._join(element, item, self._element(item, optional=index in node.optional))
        return t.list_of(element or self.subst.fresh())

    def _map(self, node: MapNode) -> Type:
        key: Type | None = None
        value: Type | None = None
        for index, (key_node, value_node) in enumerate(node.entries):
            key = self._join(key, key_node, self.visit(key_node))
            value = self._join(value, value_node, self._element(value_node, optional=index in node.optional))
        return t.map_of(key or self.subst.fresh(), value or self.subst.fresh())

    def _struct(self, node: Struct) -> Type:
        wrapped = t.wrapped(node.message)
        result = wrapped or {"google.protobuf.Timestamp": t.TIMESTAMP, "google.protobuf.Duration": t.DURATION}.get(node.message)
        if result is None:
            return self._wrong("undeclared-reference", f"{node.message!r} is not a known message", node)
        fields = {"value": wrapped} if wrapped else {"seconds": t.INT, "nanos": t.INT}
        for name, value in node.fields:
            found, expected = self.visit(value), fields.get(name)
            if expected is None:
                self._wrong("undefined-field", f"{node.message} has no field {name!r}", node)
            elif not self.subst.assign([expected], [found]):
                self._wrong("type-mismatch", f"expected {expected}, found {found}", value)
        return result

    def _fold(self, node: Fold) -> Type:
        self.visit(node.range)
        start = self.visit(node.start)
        over = self.subst.apply(node.range.type)
        if over.kind == "list":
            first, second = (t.INT, over.params[0]) if node.var2 else (over.params[0], t.DYN)
        elif over.kind == "map":
            first, second = over.params
        elif over.kind in ("dyn", "error", "param"):
            self.subst.assign([t.DYN], [over])
            first = second = t.DYN
        else:
            first = second = self._wrong("not-iterable", f"a value of type {over} cannot be iterated", node.range)
        self._scopes.append({node.accu: start})
        self._scopes.append({node.var: first, **({node.var2: second} if node.var2 else {})})
        self.visit(node.condition)
        self._assert(node.condition, t.BOOL)
        self.visit(node.step)
        self._assert(node.step, start)
        self._scopes.pop()
        result = self.visit(node.result)
        self._scopes.pop()
        return self.subst.apply(result)

    def _assert(self, node: Node, expected: Type) -> None:
        if not self.subst.assign([expected], [node.type]):
            self._wrong("type-mismatch", f"expected {expected}, found {node.type}", node)


def qualified_name(node: Node) -> str | None:
    """`a.b.c` for nested selections of a name; None for anything else."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(names)]) if isinstance(node, Ident) else None


def literal_type(value: object) -> Type:
    from dra_spec.selectors.parser import Unsigned

    if isinstance(value, bool):
        return t.BOOL
    if isinstance(value, Unsigned):
        return t.UINT
    kinds: tuple[tuple[type, Type], ...] = ((int, t.INT), (float, t.DOUBLE), (str, t.STRING), (bytes, t.BYTES))
    return next((kind for python, kind in kinds if isinstance(value, python)), t.NULL)


def _mixed_literals(root: Node) -> list[Mistake]:
    """List and map literals hold one type, except inside the arguments of format()."""
    found: list[Mistake] = []
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "format":
            continue
        stack.extend(reversed(list(node.children())))
        columns: list[list[tuple[Node, bool]]] = []
        if isinstance(node, ListNode):
            columns = [[(item, i in node.optional) for i, item in enumerate(node.items)]]
        elif isinstance(node, MapNode):
            columns = [[(k, False) for k, _ in node.entries], [(v, i in node.optional) for i, (_, v) in enumerate(node.entries)]]
        for column in columns:
            kinds = [(n, t.unwrap_optional(n.type)[0] if optional else n.type) for n, optional in column]
            for item, kind in kinds[1:]:
                if kind != kinds[0][1]:
                    found.append(Mistake("type-mismatch", f"expected {kinds[0][1]}, found {kind}", item.pos))
                    break
    return found
