"""From a checked tree to closures that evaluate it and count the cost.

Constants are folded as upstream folds them, because that is visible in the cost and in errors: literals of constants, and conversions of
a constant, are evaluated when the expression is compiled. Source: cel-go v0.29 interpreter (planner, decorators, attributes, folds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra_spec.selectors import functions_kubernetes, functions_lists, functions_text
from dra_spec.selectors.access import LOOK_UPS, chain_base, chain_steps, follow
from dra_spec.selectors.charges import LIST_BASE, MAP_BASE, STRUCT_BASE, call_cost
from dra_spec.selectors.dispatch import resolver
from dra_spec.selectors.environments import Environment
from dra_spec.selectors.frame import Closure, Frame, Growing, Lazy, attempt
from dra_spec.selectors.functions_lists import includes
from dra_spec.selectors.operations import ORDERS, ZERO_OF, concatenate, elements, insert, is_in, new_map, present, quick, runtime_name
from dra_spec.selectors.runtime import (
    Duration,
    Fault,
    Map,
    Optional,
    Timestamp,
    TypeValue,
    compare,
    equal,
    includes_item,
    is_number,
    no_overload,
    type_name,
)
from dra_spec.selectors.tree import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select, Struct
from dra_spec.selectors.types import wrapped

_ = (functions_kubernetes, functions_lists, functions_text)  # they fill the table of functions
_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])


class InstantiationError(Exception):
    """A constant part that fails already when the expression is compiled."""

    def __init__(self, fault: Fault, node: Node) -> None:
        super().__init__(fault.message)
        self.fault, self.node = fault, node


def compile_node(node: Node, environment: Environment) -> Closure:
    """Raises InstantiationError."""
    return _Compiler(environment).closure(node)


class _Compiler:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def closure(self, node: Node) -> Closure:
        constant, value = self._constant(node)
        if constant:
            return lambda frame: value
        if isinstance(node, Ident | Select):
            return self._attribute(node)
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

    def _constant(self, node: Node) -> tuple[bool, Any]:
        if isinstance(node, Literal):
            return True, node.value
        if isinstance(node, Ident | Select) and node.constant is not None:
            return True, TypeValue(runtime_name(node.constant))
        if isinstance(node, ListNode) and not node.optional:
            parts = [self._constant(item) for item in node.items]
            return (True, [v for _, v in parts]) if all(c for c, _ in parts) else (False, None)
        if isinstance(node, MapNode) and not node.optional:
            pairs = [(self._constant(k), self._constant(v)) for k, v in node.entries]
            if not all(k[0] and v[0] for k, v in pairs):
                return False, None
            return True, self._now(lambda: new_map([(k[1], v[1]) for k, v in pairs]), node)
        if isinstance(node, Call) and node.function in _CONVERSIONS and len(node.args) == 1 and node.target is None:
            constant, value = self._constant(node.args[0])
            return (True, self._now(lambda: resolver(node)([value]), node)) if constant else (False, None)
        if isinstance(node, Call) and node.overloads == ["in_list"]:
            constant, value = self._constant(node.args[1])
            if constant and not value:  # false, whatever is looked for; but that must compile
                self.closure(node.args[0])
                return True, False
            return False, None
        return False, None

    def _now(self, function: Callable[[], Any], node: Node) -> Any:
        try:
            return function()
        except Fault as fault:
            raise InstantiationError(fault, node) from None

    def _attribute(self, node: Node, *, charge: bool = True) -> Closure:
        """A name with selections and look-ups behind it: one unit for the whole, one for each step that is reached."""
        base = chain_base(node)
        steps = chain_steps(node, self._constant, self._key)
        for step in steps:
            if step.constant and not (isinstance(step.key, bool | str) or is_number(step.key)):
                raise InstantiationError(Fault("invalid-argument", f"a {type_name(step.key)} is no key"), node)
        test = isinstance(node, Select) and node.test
        if isinstance(base, Ident) and base.constant is None:
            name, own = base.name, 1

            def read(frame: Frame) -> Any:
                return frame.read(name)

            start: Closure = read
        else:
            start = self.closure(base)
            own = 0 if isinstance(base, Call) and base.function == "_?_:_" else 1
        if not charge:
            own = 0
        if isinstance(base, Ident) and base.constant is None and not steps:

            def plain(frame: Frame) -> Any:
                frame.meter.charge(own)
                return frame.read(name)

            return plain

        def evaluate(frame: Frame) -> Any:
            try:
                value = start(frame)
                return follow(value, steps, frame, test=test)
            finally:
                frame.meter.charge(own)

        return evaluate

    def _key(self, node: Node) -> Closure:
        """A key that is itself a name with selections is part of the step that looks it up."""
        if isinstance(node, Ident | Select) or (isinstance(node, Call) and node.function in LOOK_UPS):
            return self._attribute(node, charge=False)
        return self.closure(node)

    def _branch(self, node: Node) -> Closure:
        """A branch of `?:`: a name is not charged for itself there."""
        if isinstance(node, Call) and node.function not in LOOK_UPS:
            return self.closure(node)
        if isinstance(node, Ident | Select | Call) and not (isinstance(node, Ident | Select) and node.constant is not None):
            return self._attribute(node, charge=isinstance(node, Select) and node.test)
        return self.closure(node)

    def _call(self, node: Call) -> Closure:
        function = node.function
        if function in LOOK_UPS:
            return self._attribute(node)
        if function == "_?_:_":
            return self._conditional(node)
        if function in ("_&&_", "_||_"):
            return self._logical(node)
        if function == "@not_strictly_false":
            return self._not_strictly_false(node)
        if function in ("or", "orValue"):
            return self._or(node)
        if node.overloads == ["in_list"] and (found := self._in_constants(node)):
            return found
        operands = [self.closure(n) for n in ([node.target] if node.target is not None else []) + node.args]
        overload = node.overloads[0] if len(node.overloads) == 1 else ""
        apply = self._operation(node)
        unit = self._unit_cost(function, overload)

        def evaluate(frame: Frame) -> Any:
            args: list[Any] = []
            result: Any = None
            for operand in operands:
                try:
                    args.append(operand(frame))
                except Fault as fault:
                    args.append(fault)
                    result = result or fault
            if result is None:
                try:
                    result = apply(args)
                except Fault as fault:
                    result = fault
            frame.meter.charge(unit or call_cost(function, overload, args, result))
            if isinstance(result, Fault):
                raise result
            return result

        return evaluate

    def _unit_cost(self, function: str, overload: str) -> int:
        """1 for calls that cost that whatever their arguments are, else 0: saves looking the rules up each time."""
        if function == "includes" and self._environment.includes_limit is not None:
            return 1
        scalar = overload.startswith(("add_", "subtract_", "multiply_", "less_", "greater_")) and overload.endswith(("int64", "double"))
        return 1 if scalar or overload == "logical_not" else 0

    def _operation(self, node: Call) -> Callable[[list[Any]], Any]:
        if node.function == "_==_":
            return lambda args: equal(*args)
        if node.function == "_!=_":
            return lambda args: not equal(*args)
        if node.function == "@in":
            return lambda args: is_in(*args)
        if node.function == "includes":
            limit = self._environment.includes_limit
            return lambda args: includes(args[0], args[1], limit)
        if node.overloads == ["add_list"]:
            return concatenate
        if node.function == "cel.@mapInsert":
            return insert
        if node.function in ORDERS:
            wanted = ORDERS[node.function]
            return lambda args: compare(*args) in wanted
        return quick(node)

    def _in_constants(self, node: Call) -> Closure | None:
        constant, items = self._constant(node.args[1])
        if not constant or not all(isinstance(i, bool | str) or is_number(i) for i in items):
            return None
        element = self.closure(node.args[0])
        return lambda frame: any(includes_item(i, value) for value in [element(frame)] for i in items)

    def _conditional(self, node: Call) -> Closure:
        condition = self.closure(node.args[0])
        yes, no = self._branch(node.args[1]), self._branch(node.args[2])

        def evaluate(frame: Frame) -> Any:
            value = condition(frame)
            if not isinstance(value, bool):
                raise no_overload("_?_:_", value)
            return yes(frame) if value else no(frame)

        return evaluate

    def _logical(self, node: Call) -> Closure:
        deciding = node.function == "_||_"
        terms = [self.closure(a) for a in node.args]
        name = node.function

        def evaluate(frame: Frame) -> Any:
            fault: Fault | None = None
            for term in terms:
                value = attempt(term, frame)
                if value is deciding:
                    return deciding
                if not isinstance(value, bool):
                    fault = fault or (value if isinstance(value, Fault) else no_overload(name, value))
            if fault is not None:
                raise fault
            return not deciding

        return evaluate

    def _not_strictly_false(self, node: Call) -> Closure:
        inner = self.closure(node.args[0])

        def evaluate(frame: Frame) -> bool:
            value = attempt(inner, frame)
            frame.meter.charge(1)
            return value is not False

        return evaluate

    def _or(self, node: Call) -> Closure:
        assert node.target is not None
        left, right = self.closure(node.target), self.closure(node.args[0])
        whole = node.function == "or"

        def evaluate(frame: Frame) -> Any:
            value = left(frame)
            if not isinstance(value, Optional):
                raise no_overload(node.function, value)
            if not value.present:
                return right(frame)
            return value if whole else value.value

        return evaluate

    def _list(self, node: ListNode) -> Closure:
        items = [(self.closure(item), index in node.optional) for index, item in enumerate(node.items)]

        def evaluate(frame: Frame) -> list[Any]:
            try:
                out: list[Any] = []
                for item, optional in items:
                    value = item(frame)
                    if optional:
                        out.extend(present(value))
                    else:
                        out.append(value)
                return out
            finally:
                frame.meter.charge(LIST_BASE)

        return evaluate

    def _map(self, node: MapNode) -> Closure:
        entries = [(self.closure(k), self.closure(v), index in node.optional) for index, (k, v) in enumerate(node.entries)]

        def evaluate(frame: Frame) -> Map:
            try:
                pairs: list[tuple[Any, Any]] = []
                for key, value, optional in entries:
                    name, found = key(frame), value(frame)
                    pairs.extend((name, v) for v in (present(found) if optional else [found]))
                return new_map(pairs)
            finally:
                frame.meter.charge(MAP_BASE)

        return evaluate

    def _struct(self, node: Struct) -> Closure:
        fields = {name: self.closure(value) for name, value in node.fields}
        zero = wrapped(node.message)

        def evaluate(frame: Frame) -> Any:
            values = {name: value(frame) for name, value in fields.items()}
            frame.meter.charge(STRUCT_BASE)
            if zero is not None:
                return values.get("value", ZERO_OF[zero.kind])
            nanos = values.get("seconds", 0) * 10**9 + values.get("nanos", 0)
            return Timestamp(nanos) if node.message.endswith("Timestamp") else Duration(nanos)

        return evaluate

    def _quantifier(self, node: Fold) -> Closure:
        """all() and exists(), with the costs of their expansion: the condition, the accumulator in the step, the result."""
        assert isinstance(node.step, Call)
        over, predicate = self.closure(node.range), self.closure(node.step.args[1])
        deciding, condition_cost = node.macro == "exists", 3 if node.macro == "exists" else 2
        name = node.step.function

        def evaluate(frame: Frame) -> Any:
            verdict: Any = not deciding
            charge = frame.meter.charge
            for first, second in elements(over(frame), bool(node.var2)):
                charge(condition_cost)
                if verdict is deciding:
                    break
                charge(1)
                inner = Frame({node.var: first, node.var2: second} if node.var2 else {node.var: first}, frame.meter, frame)
                value = attempt(predicate, inner)
                if value is deciding:
                    verdict = deciding
                elif not isinstance(value, bool) and not isinstance(verdict, Fault):
                    verdict = value if isinstance(value, Fault) else no_overload(name, value)
            charge(1)
            if isinstance(verdict, Fault):
                raise verdict
            return verdict

        return evaluate

    def _fold(self, node: Fold) -> Closure:
        if node.macro in ("all", "exists") and not node.bind:
            return self._quantifier(node)
        over, start = self.closure(node.range), self.closure(node.start)
        condition, step, result = self.closure(node.condition), self.closure(node.step), self.closure(node.result)

        if isinstance(node.start, ListNode) and not node.bind and not node.start.items:

            def start(frame: Frame) -> Any:
                return Growing()

        elif isinstance(node.start, MapNode) and not node.bind and not node.start.entries:

            def start(frame: Frame) -> Any:
                return Map([])

        def evaluate(frame: Frame) -> Any:
            scope = Frame({node.accu: Lazy(start, frame)}, frame.meter, frame)
            for first, second in elements(over(frame), bool(node.var2)):
                inner = Frame({node.var: first, node.var2: second} if node.var2 else {node.var: first}, frame.meter, scope)
                if attempt(condition, inner) is False:
                    break
                scope.names[node.accu] = attempt(step, inner)
            found = result(scope)
            return list(found) if isinstance(found, Growing) else found

        return evaluate
