"""The validator's rules about one device and one request: taints, gates, capacity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import attrs

from dra_spec.allocation.errors import UnsupportedFeature
from dra_spec.allocation.validator_view import Seen, SeenPool
from dra_spec.allocation.z3_problem import Pick, Problem
from dra_spec.resources.claims import ExactRequest
from dra_spec.resources.slices import Capacity, Device


@attrs.frozen(eq=False)
class Taken:
    """A pick with what it stands for. `call`: index of its call."""

    pick: Pick
    call: int
    request: ExactRequest
    pool: SeenPool
    seen: Seen

    @property
    def device(self) -> Device:
        return self.seen.device


def shareable(problem: Problem, device: Device) -> bool:
    """Whether several requests may hold the device at once."""
    return device.allow_multiple_allocations and "ConsumableCapacity" in problem.features


def refusal(problem: Problem, request: ExactRequest, seen: Seen, pick: Pick | None) -> Iterator[tuple[str, str]]:
    """(rule, reason) for each rule by which this device cannot serve this request. `pick`: also compare the consumed amounts."""
    device, features = seen.device, problem.features
    if "DeviceTaints" in features:
        for taint in seen.taints:
            if taint.effect in ("NoSchedule", "NoExecute") and not any(
                t.effect in ("", taint.effect)
                and t.key in ("", taint.key)
                and (t.operator == "Exists" or (t.operator in ("", "Equal") and t.value == taint.value))
                for t in request.tolerations
            ):
                yield "taint", f"the taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    if device.binding_conditions and "DeviceBindingAndStatus" not in features:
        yield "gate", "it has binding conditions, whose feature is off"
    if device.consumes_counters and "PartitionableDevices" not in features:
        yield "gate", "it consumes counters, whose feature is off"
    if seen.slice.spec.skip_node_operations:
        if "OptionalNodeOperations" not in features:
            raise UnsupportedFeature("skipNodeOperations (optional node operations)", device.at)
        if "DRAOptionalNodeOperations" not in seen.declares:
            yield "gate", "it skips node operations, and the node does not declare that it can do without them"
    if "ConsumableCapacity" not in features:
        return
    wanted = request.capacity.requests if request.capacity else {}
    for name in wanted:
        if name not in device.capacity:
            yield "capacity", f"it has no capacity {name}"
    takes = consumption(problem, request, device)
    for name, amount in takes.items():
        if amount > device.capacity[name].value.value:
            yield "capacity", f"{name}: {amount} is more than it has"
        if name in wanted and not _allowed(device.capacity[name], amount):
            yield "capacity", f"{name}: {amount} is not what its policy allows"
    if pick is not None and pick.consumed and dict(pick.consumed) != takes:
        yield "capacity", "the consumed amounts are not what the request and the policies give"


def consumption(problem: Problem, request: ExactRequest, device: Device) -> dict[str, Fraction]:
    """How much of each capacity of the device one allocation for this request takes."""
    wanted = request.capacity.requests if request.capacity else {}
    found = {}
    for name, capacity in device.capacity.items():
        asked = wanted[name].value if name in wanted else None
        found[name] = _rounded(capacity, asked, "FractionalCapacityRange" in problem.features)
    return found


def _rounded(capacity: Capacity, asked: Fraction | None, fractional: bool) -> Fraction:
    policy = capacity.request_policy
    if asked is None:
        return policy.default.value if policy and policy.default else capacity.value.value
    if policy and policy.valid_range:
        low, step, high = policy.valid_range.min, policy.valid_range.step, policy.valid_range.max
        if asked < low.value:
            return low.value
        if step:
            unit = Fraction(1)
            if fractional and all((q.value * 1000).denominator == 1 for q in (low, step, high) if q):
                unit = Fraction(1, 1000)
            start, width = math.ceil(low.value / unit), math.ceil(step.value / unit)
            return (start + width * math.ceil(Fraction(math.ceil(asked / unit) - start, width))) * unit
    if policy and policy.valid_values:
        return min((v.value for v in policy.valid_values if v.value >= asked), default=asked)
    return asked


def _allowed(capacity: Capacity, amount: Fraction) -> bool:
    policy = capacity.request_policy
    if policy is None or (policy.default and policy.default.value == amount):
        return True
    if policy.valid_range:
        low, step, high = policy.valid_range.min, policy.valid_range.step, policy.valid_range.max
        return not (high and amount > high.value) and not (step and (amount - low.value) % step.value)
    return not policy.valid_values or any(v.value == amount for v in policy.valid_values)
