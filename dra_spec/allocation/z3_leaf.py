"""Requests as leaves, and the table that says which rules keep a device from a leaf. CEL selectors become constants here.

Source: k8s.io/dynamic-resource-allocation v0.37.2, validateDeviceRequest (errors before any search), isSelectable, allocateDevice.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from fractions import Fraction

import attrs

from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.extended_nodes import wanted_on
from dra_spec.allocation.z3_capacity import Amounts, amounts
from dra_spec.allocation.z3_problem import Problem
from dra_spec.allocation.z3_view import Candidate
from dra_spec.resources.claims import ExactRequest
from dra_spec.resources.meta import CelSelector, Toleration
from dra_spec.resources.problems import NOWHERE, Where
from dra_spec.resources.slices import Taint
from dra_spec.selectors import (
    CelAttribute,
    DerivedAttribute,
    Environment,
    Selector,
    SelectorError,
    SelectorSyntaxError,
    compile_derived,
    compile_selector,
)

MAX_RESULTS = 32
NODE_FEATURE = "DRAOptionalNodeOperations"
BLOCKING = ("NoSchedule", "NoExecute")


@attrs.frozen
class Reason:
    """A rule that stands in the way. `kind`: node, pool, class, selector, error, gate, capacity, in-use, taint, constraint, counter,
    compatibility, request, fewer, once, limit, resource. `key`: what it is about; reasons are equal if kind and key are."""

    kind: str
    key: tuple[object, ...]
    text: str = attrs.field(eq=False, default="")
    where: Where = attrs.field(eq=False, default=NOWHERE)

    def __str__(self) -> str:
        return f"{self.where.place}: {self.text}" if self.where.place else self.text


@attrs.frozen(eq=False)
class Leaf:
    """A request, or one alternative of a prioritized list, of one claim of one call."""

    index: int
    call: int
    claim: int
    number: int  # of the request inside the claim
    alternative: int
    name: str  # main or main/sub
    main: str
    request: ExactRequest
    label: str  # for messages

    @property
    def admin(self) -> bool:
        return bool(self.request.admin_access)

    @property
    def count(self) -> int:
        return self.request.number


def leaves_of(problem: Problem) -> list[Leaf]:
    """All leaf requests in search order. Raises FatalAllocation for what upstream refuses before it searches."""
    found: list[Leaf] = []
    where = special_nodes(problem)
    for index, claim in enumerate(problem.claims):
        if where.get(index) == ():
            continue
        devices = claim.spec.devices
        for constraint in devices.constraints:
            if not constraint.match_attribute and not constraint.distinct_attribute:
                raise FatalAllocation(f"{claim.label}: a constraint has neither matchAttribute nor distinctAttribute")
        least = 0
        for number, request in enumerate(devices.requests):
            counts = []
            if request.first_available and "PrioritizedList" not in problem.features:
                raise FatalAllocation(f"{claim.label}, request {request.name}: prioritized lists are switched off")
            for alternative, (name, leaf) in enumerate(request.leaves):
                _before_search(problem, f"{claim.label}, request {name}", leaf)
                label = f"request {name} of {claim.label}"
                found.append(Leaf(len(found), problem.call_of[index], index, number, alternative, name, request.name, leaf, label))
                counts.append(0 if leaf.all_devices else leaf.number)
            least += min(counts, default=0)
        if least > MAX_RESULTS:
            raise FatalAllocation(f"{claim.label} needs at least {least} devices, more than {MAX_RESULTS}")
    return found


def special_nodes(problem: Problem) -> dict[int, tuple[str, ...]]:
    """For each claim that the scheduler makes, the nodes open to its pod on which it exists."""
    found = {}
    index = 0
    for call in problem.calls:
        for claim in call.claims:
            if claim.special is not None:
                found[index] = tuple(n for n in call.nodes if wanted_on(problem, claim, n))
            index += 1
    return found


def _before_search(problem: Problem, label: str, request: ExactRequest) -> None:
    if request.capacity and request.capacity.requests and "ConsumableCapacity" not in problem.features:
        raise FatalAllocation(f"{label}: capacity requests are switched off")
    if request.admin_access is not None and "AdminAccess" not in problem.features:
        raise FatalAllocation(f"{label}: admin access is switched off")
    if request.derived_attributes:
        if "DerivedAttributes" not in problem.features:
            raise FatalAllocation(f"{label}: derived attributes are switched off")
        for derived in request.derived_attributes:
            try:
                _derived(derived.expression, problem.environment)
            except SelectorSyntaxError as error:
                raise FatalAllocation(f"{label}: derived attribute {derived.name}: {error}") from None
    if request.device_class_name not in problem.classes:
        raise FatalAllocation(f"{label}: there is no DeviceClass {request.device_class_name!r}")
    if request.allocation_mode not in ("", "ExactCount", "All"):
        raise FatalAllocation(f"{label}: unknown allocationMode {request.allocation_mode!r}")


Answers = dict[tuple[str, str], bool | SelectorError]  # (expression, device) -> what the selector says


@attrs.define(eq=False)
class Table:
    """Why a device cannot serve a leaf, whatever else is allocated: asked once per device and selector. `errors`: by leaf and
    device what fails there; upstream aborts if its search gets that far."""

    problem: Problem
    answers: Answers = attrs.field(factory=dict)
    errors: dict[tuple[int, str], str] = attrs.field(factory=dict)
    _held: dict[str, list[str]] = attrs.field(init=False)
    _live: set[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._held, self._live = {}, set()
        for holding in self.problem.holdings:
            if holding.shared:
                self._live.add(holding.device)
            else:
                self._held.setdefault(holding.device, []).append(holding.claim)

    def shared(self, device: Candidate) -> bool:
        """Whether the device may serve several requests at once."""
        return device.device.allow_multiple_allocations and "ConsumableCapacity" in self.problem.features

    def live(self, device: Candidate) -> bool:
        """Whether somebody holds a share of the device."""
        return device.name in self._live

    def amounts(self, leaf: Leaf, device: Candidate) -> Amounts:
        """What one allocation for the leaf takes of each capacity of the device; nothing while the feature is off."""
        return amounts(self.problem, leaf.request, device.device)

    def selectable(self, leaf: Leaf, device: Candidate) -> list[Reason]:
        """The reasons that also take a device off the list of a request for all: binding gate, selectors, what it has at most."""
        found = [*self._gate(device), *self._selector(leaf, device)]
        taken = self.amounts(leaf, device)
        if taken.error:
            if not found:
                self.errors[leaf.index, device.name] = taken.error
            found.append(Reason("error", ("amount", leaf.index), f"{leaf.label}: {taken.error}", leaf.request.at))
        for name, text in taken.refused.items():
            found.append(Reason("capacity", (leaf.claim, leaf.name, name), f"{leaf.label} wants {text}", leaf.request.at))
        return found

    def others(self, leaf: Leaf, device: Candidate) -> list[Reason]:
        """The reasons that a request for all cannot pass over."""
        found = list(self._in_use(leaf, device))
        features = self.problem.features
        if device.slice.spec.skip_node_operations:
            found += self._node_can(leaf, device)
        if device.device.consumes_counters and "PartitionableDevices" not in features:
            found.append(Reason("gate", ("counters",), "the device consumes counters, and that feature is off", device.device.at))
        if "DeviceTaints" in features:
            for taint in device.taints:
                if taint.effect in BLOCKING and not any(_tolerates(t, taint) for t in leaf.request.tolerations):
                    shown = f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
                    key = (leaf.claim, leaf.name, taint.key, taint.value, taint.effect)
                    found.append(Reason("taint", key, f"{leaf.label} does not tolerate the taint {shown}", taint.at))
        found += self._capacity_left(leaf, device)
        return found

    def _node_can(self, leaf: Leaf, device: Candidate) -> Iterator[Reason]:
        """A node must declare that it can do without the driver. While the gate is off an API server drops the field."""
        place = device.slice.where("spec.skipNodeOperations")
        nodes = self.problem.calls[leaf.call].nodes
        able = [NODE_FEATURE in self.problem.node(n).status.declared_features for n in nodes]
        if "OptionalNodeOperations" not in self.problem.features or (any(able) and not all(able)):
            raise UnsupportedFeature("skipNodeOperations (optional node operations)", place)
        if not any(able):
            yield Reason("gate", ("skip",), f"node {nodes[0]} does not declare the feature {NODE_FEATURE}", place)

    def _gate(self, device: Candidate) -> Iterator[Reason]:
        if device.device.binding_conditions and "DeviceBindingAndStatus" not in self.problem.features:
            yield Reason("gate", ("binding",), "the device has binding conditions, and that feature is off", device.device.at)

    def _selector(self, leaf: Leaf, device: Candidate) -> Iterator[Reason]:
        """The first selector that refuses, as upstream asks them, and all later ones that do too."""
        own = self.problem.classes[leaf.request.device_class_name].spec.selectors
        refused = False
        for i, selector in enumerate(own + leaf.request.selectors):
            answer = self.answer(selector, device)
            if answer is True:
                continue
            of_class = i < len(own)
            kind = "class" if of_class else "selector"
            key = (leaf.request.device_class_name, i) if of_class else (leaf.claim, leaf.name, i - len(own))
            owner = f"class {leaf.request.device_class_name}" if of_class else leaf.label
            text = f"{owner}: the selector {_one_line(selector.expression)} does not hold"
            if isinstance(answer, SelectorError):
                if not refused:
                    self.errors[leaf.index, device.name] = str(answer)
                text = f"{owner}: the selector {_one_line(selector.expression)} fails: {answer.message}"
            refused = True
            yield Reason(kind, key, text, selector.at)

    def answer(self, selector: CelSelector, device: Candidate) -> bool | SelectorError:
        """What the selector says of the device. Raises FatalAllocation if it does not compile, UnsupportedFeature."""
        key = (selector.expression, device.name)
        if key not in self.answers:
            try:
                compiled = _compiled(selector, self.problem.environment)
            except SelectorSyntaxError as error:
                raise FatalAllocation(str(error)) from None
            seen = device.view
            if seen.ambiguous:
                text = f"a name that is given both with and without its domain ({seen.ambiguous[0]})"
                raise UnsupportedFeature(text, device.device.at)
            self.answers[key] = compiled.matches(seen)
        return self.answers[key]

    def _in_use(self, leaf: Leaf, device: Candidate) -> Iterator[Reason]:
        if not leaf.admin:
            for claim in self._held.get(device.name, ()):
                yield held(claim)

    def _capacity_left(self, leaf: Leaf, device: Candidate) -> Iterator[Reason]:
        """Only for devices that serve one request at a time; what shared ones have left depends on the others."""
        if self.shared(device):
            return
        taken = self.amounts(leaf, device).consumed
        holders = [h for h in self.problem.holdings if h.device == device.name and h.consumed]
        for name, amount in taken.items():
            before = sum((dict(h.consumed).get(name, Fraction(0)) for h in holders), Fraction(0))
            if before and before + amount > device.device.capacity[name].value.value:
                yield from (held(h.claim) for h in holders if dict(h.consumed).get(name))


@functools.lru_cache(maxsize=1024)
def _derived(expression: str, environment: Environment) -> DerivedAttribute:
    return compile_derived(expression, environment=environment)


def derived_values(expression: str, device: Candidate, environment: Environment) -> tuple[CelAttribute, ...] | SelectorError:
    """What a derived attribute is on a device: its values, more than one only for a list. Raises SelectorSyntaxError."""
    value = _derived(expression, environment).value(device.view)
    return value if isinstance(value, (SelectorError, tuple)) else (value,)


@functools.lru_cache(maxsize=1024)
def _compiled(selector: CelSelector, environment: Environment) -> Selector:
    return compile_selector(selector.expression, selector.at, environment)


def held(claim: str) -> Reason:
    """Another claim holds devices."""
    return Reason("in-use", (claim,), f"devices are in use by {claim or 'another claim'}")


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("Equal", "") and toleration.value == taint.value)


def _one_line(expression: str) -> str:
    text = " ".join(expression.split())
    return repr(text if len(text) <= 120 else text[:117] + "...")
