"""A selector as a Z3 formula over an arbitrary device: for the part of CEL that selectors mostly use.

Each value has a condition under which it is an error, and alternatives by kind (an attribute without a known type can be of several). Real
numbers stand for quantities, and for versions by their place in the order: that is denser than versions are, so what is found
satisfiable must be confirmed by evaluating; what is found unsatisfiable is.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import attrs
import z3

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors import functions_kubernetes
from dra_spec.selectors.functions_standard import FUNCTIONS
from dra_spec.selectors.runtime import Fault
from dra_spec.selectors.tree import Call, Fold, Ident, ListNode, Literal, Node, Select, clone, walk

_ = functions_kubernetes  # it fills the table of functions
TRUE, FALSE = z3.BoolVal(True), z3.BoolVal(False)
KINDS = ("int", "bool", "string", "version", "list")  # of a list only that it is unlike the others
INT64 = 2**63


class Undecidable(Exception):
    """Something that is not encoded, named."""


@attrs.frozen(order=True)
class Read:
    """`of`: attributes or capacity."""

    of: str
    domain: str
    name: str

    def __str__(self) -> str:
        return f"device.{self.of}[{self.domain!r}].{self.name}"


@attrs.frozen(eq=False)
class Value:
    """`error`: when it is an error. `kinds`: kind -> (when it is of that kind, the value); exactly one holds unless it is an error."""

    error: Any
    kinds: Mapping[str, tuple[Any, Any]]


def known(kind: str, value: Any) -> Value:
    return Value(FALSE, {kind: (TRUE, value)})


def boolean(value: Any, error: Any = FALSE) -> Value:
    return Value(error, {"bool": (TRUE, value)})


class Inputs:
    """The device: a variable for each attribute and capacity that is looked at. `types`: kinds of attributes that are known."""

    def __init__(self, types: Mapping[Read, str], trees: list[Node]) -> None:
        self.types = types
        self.driver, self.multiple = z3.String("driver"), z3.Bool("allowMultipleAllocations")
        self.present: dict[Read, Any] = {}
        self.values: dict[Read, Value] = {}
        self.constraints: list[Any] = []
        self.versions = sorted({v for tree in trees for v in _versions(tree)})

    def rank(self, version: SemVer) -> Any:
        return z3.RealVal(self.versions.index(version))

    def read(self, read: Read) -> Value:
        """Its value, without the error for its absence."""
        if read not in self.values:
            name = str(read)
            self.present[read] = z3.Bool(f"{name} is present")
            if read.of == "capacity":
                self.values[read] = known("quantity", z3.Real(name))
            else:
                self.values[read] = self._attribute(name, self.types.get(read))
        return self.values[read]

    def _attribute(self, name: str, kind: str | None) -> Value:
        makers = {"int": z3.Int, "bool": z3.Bool, "string": z3.String, "version": z3.Real, "list": z3.Int}
        choice = z3.Int(f"{name} kind")
        self.constraints.append(z3.And(choice >= 0, choice < len(KINDS)))
        number = z3.Int(f"{name} int")
        self.constraints.append(z3.And(number >= -INT64, number < INT64))
        if kind is not None and kind not in KINDS:
            raise Undecidable(f"attributes of type {kind}")
        allowed = [k for k in KINDS if kind in (None, k)]
        self.constraints.append(z3.Or([choice == KINDS.index(k) for k in allowed]))
        return Value(FALSE, {k: (choice == KINDS.index(k), makers[k](f"{name} {k}")) for k in allowed})


def _versions(tree: Node) -> list[SemVer]:
    found = []
    for node in walk(tree):
        if isinstance(node, Call) and node.function == "semver":
            found.append(_constant_call(node))
    return found


def _constant_call(node: Call) -> Any:
    """semver("...") or quantity("...") of literals. Raises Undecidable."""
    if not all(isinstance(a, Literal) for a in node.args):
        raise Undecidable(f"{node.function}() of something that is no literal")
    overload = node.overloads[0]
    try:
        return FUNCTIONS[overload](*(a.value for a in node.args if isinstance(a, Literal)))
    except Fault:
        raise Undecidable(f"{node.function}() of a wrong literal") from None


class Encoder:
    """Raises Undecidable for what it does not know."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._names: dict[str, Any] = {}  # name -> Value, or the tree that cel.bind() gave

    def value(self, node: Node) -> Value:
        if isinstance(node, Literal):
            return self._literal(node.value)
        read = self.as_read(node)
        if read is not None:
            value = self._inputs.read(read)
            return Value(z3.Or(value.error, z3.Not(self._inputs.present[read])), value.kinds)
        if isinstance(node, Ident) and node.name in self._names:
            bound = self._names[node.name]
            return bound if isinstance(bound, Value) else self.value(bound)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Fold):
            return self._fold(node)
        raise Undecidable(type(node).__name__)

    def truth(self, node: Node) -> tuple[Any, Any]:
        """(it is an error or no bool, its value)."""
        return self._bool(self.value(node))

    def bind(self, name: str, tree: Node) -> None:
        """What a name of cel.bind() stands for."""
        self._names[name] = tree

    def as_read(self, node: Node) -> Read | None:
        """`device.attributes[domain].name` and its other spellings, also through cel.bind()."""
        node = self._resolve(node)
        key = _key(node)
        outer = _operand(node)
        if key is None or outer is None:
            return None
        outer = self._resolve(outer)
        domain, device = _key(outer), _operand(outer)
        if domain is None or not isinstance(device, Select) or not _is_device(device.operand):
            return None
        return Read(device.field, domain, key) if device.field in ("attributes", "capacity") else None

    def _resolve(self, node: Node) -> Node:
        while isinstance(node, Ident) and isinstance(self._names.get(node.name), Node):
            node = self._names[node.name]
        return node

    def _literal(self, value: object) -> Value:
        if isinstance(value, bool):
            return boolean(z3.BoolVal(value))
        if isinstance(value, int):
            return known("int", z3.IntVal(int(value)))
        if isinstance(value, float) and abs(value) < 2.0**53:  # beyond, comparing with ints loses digits
            return known("double", z3.RealVal(str(Fraction(value))))
        if isinstance(value, str):
            return known("string", z3.StringVal(value))
        raise Undecidable(f"the literal {value!r}")

    def _select(self, node: Select) -> Value:
        if node.test:
            plain = clone(node)
            assert isinstance(plain, Select)
            plain.test = False
            return boolean(self._presence(plain))
        if _is_device(node.operand):
            if node.field == "driver":
                return known("string", self._inputs.driver)
            if node.field == "allowMultipleAllocations":
                return boolean(self._inputs.multiple)
        raise Undecidable(f"the field {node.field!r}")

    def _presence(self, node: Node) -> Any:
        read = self.as_read(node)
        if read is None:
            raise Undecidable("has() of something else than an attribute or capacity")
        self._inputs.read(read)
        return self._inputs.present[read]

    def _call(self, node: Call) -> Value:
        function, args = node.function, node.args
        if function in ("_&&_", "_||_"):
            return self._logical(node)
        if function == "!_":
            error, value = self.truth(args[0])
            return boolean(z3.Not(value), error)
        if function == "_?_:_":
            return self._conditional(node)
        if function in ("_==_", "_!=_"):
            result = self._equal(self.value(args[0]), self.value(args[1]))
            value = result.kinds["bool"][1]
            return boolean(value if function == "_==_" else z3.Not(value), result.error)
        if function in _ORDERS:
            return self._order(function, self.value(args[0]), self.value(args[1]), ("int", "double", "string"))
        if function in ("isGreaterThan", "isLessThan", "compareTo") and node.target is not None:
            return self._compare(node)
        if function == "@in":
            return self._in(node)
        if function in ("semver", "quantity"):
            constant = _constant_call(node)
            if isinstance(constant, SemVer):
                return known("version", self._inputs.rank(constant))
            assert isinstance(constant, Quantity)
            return known("quantity", z3.RealVal(str(constant.value)))
        if function in ("startsWith", "endsWith", "contains") and node.target is not None:
            return self._text(node)
        if function in ("orValue", "hasValue") and node.target is not None:
            return self._optional(node)
        if function in _ARITHMETIC:
            return self._arithmetic(node)
        raise Undecidable(f"the function {function!r}")

    def _bool(self, value: Value) -> tuple[Any, Any]:
        if "bool" not in value.kinds:
            return TRUE, FALSE
        guard, truth = value.kinds["bool"]
        return z3.Or(value.error, z3.Not(guard)), truth

    def _logical(self, node: Call) -> Value:
        """An error counts only if the other side does not decide."""
        (e1, v1), (e2, v2) = self.truth(node.args[0]), self.truth(node.args[1])
        wanted = (z3.Not(v1), z3.Not(v2)) if node.function == "_&&_" else (v1, v2)
        decided = z3.Or(z3.And(z3.Not(e1), wanted[0]), z3.And(z3.Not(e2), wanted[1]))
        error = z3.And(z3.Not(decided), z3.Or(e1, e2))
        return boolean(z3.Not(decided) if node.function == "_&&_" else decided, error)

    def _conditional(self, node: Call) -> Value:
        error, condition = self.truth(node.args[0])
        return self._choose(condition, self.value(node.args[1]), self.value(node.args[2]), error)

    def _choose(self, condition: Any, yes: Value, no: Value, error: Any = FALSE) -> Value:
        kinds: dict[str, tuple[Any, Any]] = {}
        for kind in {**yes.kinds, **no.kinds}:
            (g1, v1), (g2, v2) = yes.kinds.get(kind, (FALSE, None)), no.kinds.get(kind, (FALSE, None))
            guard = z3.Or(z3.And(condition, g1), z3.And(z3.Not(condition), g2))
            kinds[kind] = (guard, v2 if v1 is None else v1 if v2 is None else z3.If(condition, v1, v2))
        return Value(z3.Or(error, z3.If(condition, yes.error, no.error)), kinds)

    def _equal(self, left: Value, right: Value) -> Value:
        error, result = z3.Or(left.error, right.error), FALSE
        for k1, (g1, v1) in left.kinds.items():
            for k2, (g2, v2) in right.kinds.items():
                both = z3.And(g1, g2)
                if k1 == k2 or {k1, k2} == {"int", "double"}:
                    result = z3.Or(result, z3.And(both, v1 == v2))
                elif k1 in ("version", "quantity"):
                    error = z3.Or(error, both)
        return boolean(result, error)

    def _order(self, function: str, left: Value, right: Value, allowed: tuple[str, ...]) -> Value:
        error, result, covered = z3.Or(left.error, right.error), FALSE, FALSE
        for k1, (g1, v1) in left.kinds.items():
            for k2, (g2, v2) in right.kinds.items():
                if k1 in allowed and (k1 == k2 or {k1, k2} == {"int", "double"}):
                    both = z3.And(g1, g2)
                    covered = z3.Or(covered, both)
                    result = z3.Or(result, z3.And(both, _ORDERS[function](v1, v2)))
        return boolean(result, z3.Or(error, z3.Not(covered)))

    def _compare(self, node: Call) -> Value:
        assert node.target is not None
        left, right = self.value(node.target), self.value(node.args[0])
        ordered = ("version", "quantity")
        greater, less = self._order("_>_", left, right, ordered), self._order("_<_", left, right, ordered)
        if node.function != "compareTo":
            return greater if node.function == "isGreaterThan" else less
        is_greater, is_less = greater.kinds["bool"][1], less.kinds["bool"][1]
        return Value(greater.error, {"int": (TRUE, z3.If(is_greater, z3.IntVal(1), z3.If(is_less, z3.IntVal(-1), z3.IntVal(0))))})

    def _in(self, node: Call) -> Value:
        container = self._resolve(node.args[1])
        if isinstance(container, ListNode) and not container.optional:
            element, found = self.value(node.args[0]), FALSE
            for item in container.items:
                equality = self._equal(self.value(item), element)
                found = z3.Or(found, z3.And(z3.Not(equality.error), equality.kinds["bool"][1]))
            return boolean(found, element.error)
        key = node.args[0]
        if isinstance(key, Literal) and isinstance(key.value, str):
            return boolean(self._presence(Select(node.pos, container, key.value)))
        raise Undecidable("`in` of something else than a list of values or the attributes of a domain")

    def _text(self, node: Call) -> Value:
        assert node.target is not None
        text, part = self.value(node.target), self.value(node.args[0])
        (g1, v1), (g2, v2) = text.kinds.get("string", (FALSE, None)), part.kinds.get("string", (FALSE, None))
        error = z3.Or(text.error, part.error, z3.Not(g1), z3.Not(g2))
        if v1 is None or v2 is None:
            return boolean(FALSE, TRUE)
        relation = {"startsWith": z3.PrefixOf, "endsWith": z3.SuffixOf}.get(node.function)
        return boolean(relation(v2, v1) if relation else z3.Contains(v1, v2), error)

    def _optional(self, node: Call) -> Value:
        target = node.target
        if not (isinstance(target, Call) and target.function in ("_?._", "_[?_]")):
            raise Undecidable("optional values other than of an attribute or capacity")
        plain = Call(target.pos, "_[_]", target.args)
        present = self._presence(plain)
        if node.function == "hasValue":
            return boolean(present)
        read = self.as_read(plain)
        assert read is not None
        return self._choose(present, self._inputs.read(read), self.value(node.args[0]))

    def _arithmetic(self, node: Call) -> Value:
        left, right = self.value(node.args[0]), self.value(node.args[1])
        if "int" not in left.kinds or "int" not in right.kinds or "string" in left.kinds:
            raise Undecidable("arithmetic of other values than ints")
        (g1, v1), (g2, v2) = left.kinds["int"], right.kinds["int"]
        result = _ARITHMETIC[node.function](v1, v2)
        out = z3.Or(result < -INT64, result >= INT64)
        return Value(z3.Or(left.error, right.error, z3.Not(g1), z3.Not(g2), out), {"int": (TRUE, result)})

    def _fold(self, node: Fold) -> Value:
        """cel.bind(), and all() and exists() over a literal list."""
        before = self._names.get(node.accu if node.bind else node.var)
        try:
            if node.bind:
                self._names[node.accu] = self._resolve(node.start)
                return self.value(node.result)
            items = self._resolve(node.range)
            if node.macro not in ("all", "exists") or node.var2 or not isinstance(items, ListNode) or items.optional:
                raise Undecidable(f"the macro {node.macro}()")
            assert isinstance(node.step, Call)
            result = known("bool", z3.BoolVal(node.macro == "all"))
            for item in items.items:
                self._names[node.var] = self.value(item)
                error, value = self.truth(node.step.args[1])
                self._names["@a"], self._names["@b"] = result, boolean(value, error)
                result = self._logical(Call(node.pos, node.step.function, [Ident(node.pos, "@a"), Ident(node.pos, "@b")]))
            return result
        finally:
            name = node.accu if node.bind else node.var
            self._names.pop(name, None)
            if before is not None:
                self._names[name] = before


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == "device"


def _key(node: Node) -> str | None:
    if isinstance(node, Select) and not node.test:
        return node.field
    if isinstance(node, Call) and node.function in ("_[_]", "_?._", "_[?_]"):
        key = node.args[1]
        return key.value if isinstance(key, Literal) and isinstance(key.value, str) else None
    return None


def _operand(node: Node) -> Node | None:
    if isinstance(node, Select):
        return node.operand
    return node.args[0] if isinstance(node, Call) and node.args else None


_ORDERS: dict[str, Any] = {
    "_<_": lambda a, b: a < b,
    "_<=_": lambda a, b: a <= b,
    "_>_": lambda a, b: b < a,
    "_>=_": lambda a, b: b <= a,
}
_ARITHMETIC: dict[str, Any] = {"_+_": lambda a, b: a + b, "_-_": lambda a, b: a - b, "_*_": lambda a, b: a * b}
