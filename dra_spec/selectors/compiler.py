"""Compiling and evaluating device selectors and derived attributes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import attrs

from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.resources.semver import SemVer
from dra_spec.selectors import types as t
from dra_spec.selectors.charges import LIMIT, RUNTIME_LIMIT, Meter
from dra_spec.selectors.checker import Mistake, check
from dra_spec.selectors.device import CelAttribute, SelectorDevice
from dra_spec.selectors.environments import LATEST, STORED, Environment
from dra_spec.selectors.errors import SelectorError, SelectorSyntaxError, syntax_error
from dra_spec.selectors.evaluator import InstantiationError, compile_node
from dra_spec.selectors.frame import Closure, Frame
from dra_spec.selectors.lexer import CelSyntaxError
from dra_spec.selectors.literals import check_literals, constant_patterns
from dra_spec.selectors.parser import Unsigned, parse
from dra_spec.selectors.runtime import CostLimit, Fault, type_name
from dra_spec.selectors.tree import Node

MAX_LENGTH = 10 * 1024  # bytes of an expression, resource.k8s.io/v1
_RECURSION = 30_000  # enough for the deepest expression that the parser takes
_SCALARS = (t.BOOL, t.INT, t.STRING, t.ANY, t.DYN, t.SEMVER)


@attrs.frozen(eq=False)
class Program:
    """A compiled expression. `tree`: its syntax tree, with types."""

    expression: str
    where: Where
    environment: Environment
    tree: Node = attrs.field(repr=False)
    _closure: Closure = attrs.field(repr=False)

    @property
    def max_cost(self) -> int:
        """What evaluating it costs at most, as the API server estimates it; 2^64 - 1 if there is no bound."""
        from dra_spec.selectors.cost import estimate  # only new objects are asked for it

        with _deep():
            return estimate(self.tree, self.environment)

    def run(self, device: SelectorDevice, limit: int = RUNTIME_LIMIT) -> tuple[Any, int]:
        """The value or a SelectorError, and what the evaluation cost."""
        meter = Meter(limit)
        try:
            with _deep():
                return self._closure(Frame({"device": device.variables}, meter)), meter.cost
        except Fault as fault:
            return self._failed(device, fault.kind, fault.message), meter.cost
        except CostLimit:
            return self._failed(device, "cost-limit", f"evaluating it costs more than {limit}"), meter.cost

    def _failed(self, device: SelectorDevice, kind: str, message: str) -> SelectorError:
        return SelectorError(message, self.expression, device.name, kind)


@attrs.frozen(eq=False)
class Selector(Program):
    """A compiled selector. A selector that fails on a device gives a SelectorError."""

    def matches(self, device: SelectorDevice) -> bool | SelectorError:
        """Whether the device matches, or why that cannot be said (missing attribute, wrong type, cost ...).

        Such an error aborts the scheduling attempt upstream (k8s.io/dynamic-resource-allocation cel, DeviceMatches).
        """
        value, _ = self.run(device)
        if isinstance(value, bool | SelectorError):
            return value
        return self._failed(device, "result-not-bool", f"the result is {_shown(value)}, expected true or false")


@attrs.frozen(eq=False)
class DerivedAttribute(Program):
    """The compiled expression of a derived attribute."""

    def value(self, device: SelectorDevice) -> CelAttribute | SelectorError:
        """The attribute: a scalar or a tuple of scalars of one type (an empty list is a list of strings).

        Source: k8s.io/dynamic-resource-allocation cel, EvaluateDerivedAttribute.
        """
        value, _ = self.run(device)
        if isinstance(value, SelectorError) or _is_scalar(value):
            found: CelAttribute | SelectorError = value
            return found
        if not isinstance(value, list):
            return self._failed(device, "unsupported-type", f"the result is a {type_name(value)}, expected an attribute's value")
        for item in value:
            if not _is_scalar(value[0]):
                return self._failed(device, "unsupported-type", f"the result is a list of {type_name(value[0])}")
            if type_name(item) != type_name(value[0]):
                message = f"the result is a list with a {type_name(value[0])} and a {type_name(item)}"
                return self._failed(device, "list-element-type", message)
        return tuple(value)


def compile_selector(expression: str, where: Where = NOWHERE, environment: Environment = STORED) -> Selector:
    """Compile an expression with the types that Kubernetes declares.

    Raises SelectorSyntaxError (a ManifestError, code DRA130) with line, column and a caret. It names the Kubernetes version if another
    version would take the expression.
    """
    return _in_environment(_selector, expression, where, environment)


def compile_derived(expression: str, where: Where = NOWHERE, environment: Environment = STORED) -> DerivedAttribute:
    """Compile the expression of a derived attribute. Raises SelectorSyntaxError, as for a selector."""
    return _in_environment(_derived, expression, where, environment)


_P = TypeVar("_P", bound=Program)


def _in_environment(compile_it: Callable[[str, Where, Environment], _P], expression: str, where: Where, environment: Environment) -> _P:
    try:
        return compile_it(expression, where, environment)
    except SelectorSyntaxError as error:
        if environment == STORED:
            raise
        raise _explained(error, lambda other: compile_it(expression, where, other), environment) from None


def _explained(error: SelectorSyntaxError, compile_in: Callable[[Environment], object], environment: Environment) -> SelectorSyntaxError:
    """The error, with the version or the gates that are to blame for it, if any are."""

    def taken(other: Environment) -> bool:
        try:
            compile_in(other)
        except SelectorSyntaxError:
            return False
        return True

    version = environment.version
    if not environment.stored and taken(Environment.of(version)):
        blame = f"an API server of Kubernetes {version} with these feature gates does not take this in a new object"
        if taken(attrs.evolve(environment, list_types=True)):
            blame += ": --gate DRAListTypeAttributes=true"
        elif taken(attrs.evolve(environment, consumable=True)):
            blame += ": --gate DRAConsumableCapacity=true"
    elif version != LATEST and taken(Environment.of(LATEST)):
        blame = f"Kubernetes {version} does not know this, {LATEST} does"
    else:
        return error
    (problem,) = error.problems
    first, newline, rest = problem.message.partition("\n")
    found = SelectorSyntaxError([attrs.evolve(problem, message=f"{first} ({blame}){newline}{rest}")])
    found.kind = error.kind
    return found


def _selector(expression: str, where: Where, environment: Environment) -> Selector:
    tree, closure = _compile(expression, where, environment)
    if tree.type not in (t.BOOL, environment.attribute_type):
        raise _error(expression, where, Mistake("wrong-output-type", f"the expression gives {tree.type}, expected bool", 0))
    return Selector(expression, where, environment, tree, closure)


def _derived(expression: str, where: Where, environment: Environment) -> DerivedAttribute:
    tree, closure = _compile(expression, where, environment)
    element = tree.type.params[0] if tree.type.kind == "list" and (environment.stored or environment.list_types) else tree.type
    if element not in _SCALARS:
        message = f"the expression gives {tree.type}, expected a string, int, bool, version or a list of one of these"
        raise _error(expression, where, Mistake("wrong-output-type", message, 0))
    return DerivedAttribute(expression, where, environment, tree, closure)


def admit_selector(expression: str, where: Where = NOWHERE, environment: Environment = STORED) -> Selector:
    """Compile what a new object carries: also its length and its estimated cost are limited, as the API server does.

    Raises SelectorSyntaxError.
    """
    if len(expression.encode()) > MAX_LENGTH:
        raise _error(expression, where, Mistake("too-long", f"the expression is longer than {MAX_LENGTH} bytes", 0))
    selector = compile_selector(expression, where, environment)
    if selector.max_cost > LIMIT:
        message = f"evaluating the expression may cost {selector.max_cost}, and at most {LIMIT} is allowed"
        raise _error(expression, where, Mistake("cost-limit", message, 0))
    return selector


def admit_derived(expression: str, where: Where = NOWHERE, environment: Environment = STORED, limit: int = LIMIT) -> DerivedAttribute:
    """As `admit_selector`, for a derived attribute. `limit`: what the others of the claim have left. Raises SelectorSyntaxError."""
    compiled = compile_derived(expression, where, environment)
    if compiled.max_cost > limit:
        message = f"the derived attributes of a claim may cost {LIMIT} together, and this one alone {compiled.max_cost}"
        raise _error(expression, where, Mistake("cost-limit", message, 0))
    return compiled


def _compile(expression: str, where: Where, environment: Environment) -> tuple[Node, Closure]:
    with _deep():
        try:
            tree = parse(expression)
        except CelSyntaxError as error:
            raise _error(expression, where, Mistake(error.kind, error.message, error.pos)) from None
        mistakes = check(tree, environment)
        if not mistakes:
            mistakes = [*check_literals(tree), *constant_patterns(tree)]
        if mistakes:
            raise _error(expression, where, mistakes[0])
        try:
            return tree, compile_node(tree, environment)
        except InstantiationError as error:
            raise _error(expression, where, Mistake("program-instantiation", error.fault.message, error.node.pos)) from None


def _error(expression: str, where: Where, mistake: Mistake) -> SelectorSyntaxError:
    before = expression[: mistake.pos]
    line, column = before.count("\n") + 1, mistake.pos - (before.rfind("\n") + 1) + 1
    return syntax_error(expression, where, line, column, mistake.message, mistake.kind)


@contextlib.contextmanager
def _deep() -> Iterator[None]:
    """Room for deep trees: 250 levels are legal, and each takes several calls."""
    before = sys.getrecursionlimit()
    if before >= _RECURSION:
        yield
        return
    sys.setrecursionlimit(_RECURSION)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | str | SemVer) or (isinstance(value, int) and not isinstance(value, Unsigned))


def _shown(value: object) -> str:
    if isinstance(value, SemVer):
        return f"the version {value}"
    return repr(value) if isinstance(value, int | float | str) or value is None else f"a {type_name(value)}"
