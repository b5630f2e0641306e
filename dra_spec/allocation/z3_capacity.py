"""Consumable capacity: what one allocation takes of a device. Source: v0.37.2 consumable_capacity.go, KEP-5075."""

from __future__ import annotations

from fractions import Fraction

import attrs

from dra_spec.allocation.z3_problem import Problem
from dra_spec.resources.claims import CapacityRequirements, ExactRequest
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import Capacity, Device, ValidRange

_LARGEST = 2**63 - 1


@attrs.frozen
class Amounts:
    """`consumed`: by capacity; `refused`: by capacity why the request can never be served by the device; `error`: fatal, or ""."""

    consumed: dict[str, Fraction]
    refused: dict[str, str]
    error: str = ""


def amounts(problem: Problem, request: ExactRequest, device: Device) -> Amounts:
    """Nothing while the feature is off, or if nothing is asked of a device that is not shared."""
    if "ConsumableCapacity" not in problem.features:
        return Amounts({}, {})
    wanted = request.capacity.requests if request.capacity else {}
    fractional = "FractionalCapacityRange" in problem.features
    consumed: dict[str, Fraction] = {}
    refused = {name: f"{name}: {amount}, which the device does not have" for name, amount in wanted.items() if name not in device.capacity}
    for name, capacity in device.capacity.items():
        asked = wanted[name].value if name in wanted else None
        if asked is not None and asked < 0:
            return Amounts({}, {}, f"it asks for a negative amount of {name}: {wanted[name]}")
        taken = _consumed(capacity, asked, fractional)
        valid = capacity.request_policy.valid_range if capacity.request_policy is not None else None
        if asked is not None and valid is not None and valid.step is not None and max(asked, taken) > _LARGEST:
            return Amounts({}, {}, f"it asks for {wanted[name]} of {name}, more than a device's range can count")
        consumed[name] = taken
        if taken > capacity.value.value:
            refused[name] = f"{_shown(taken, wanted.get(name, capacity.value))} of {name}, the device has {capacity.value}"
        elif asked is not None and not _respects(capacity, taken):
            refused[name] = f"{wanted[name]} of {name}, which its request policy does not allow{_told(capacity)}"
    return Amounts(consumed, refused)


def _told(capacity: Capacity) -> str:
    """What the policy allows, in words."""
    policy = capacity.request_policy
    valid = policy.valid_range if policy is not None else None
    if valid is not None:
        most = f" to {valid.max}" if valid.max is not None else " or more"
        return f" ({valid.min}{most}{f' in steps of {valid.step}' if valid.step is not None else ''})"
    return f" (one of {', '.join(str(v) for v in policy.valid_values)})" if policy is not None else ""


def _shown(amount: Fraction, like: Quantity) -> Quantity:
    return Quantity(amount, like.style)


def untold(problem: Problem, request: ExactRequest, device: Device, name: str) -> Fraction:
    """What an allocation takes of a capacity if the request does not speak of it."""
    left = {k: v for k, v in (request.capacity.requests if request.capacity else {}).items() if k != name}
    return amounts(problem, attrs.evolve(request, capacity=CapacityRequirements(requests=left)), device).consumed.get(name, Fraction(0))


def _consumed(capacity: Capacity, asked: Fraction | None, fractional: bool) -> Fraction:
    policy = capacity.request_policy
    if asked is None:
        return policy.default.value if policy is not None and policy.default is not None else capacity.value.value
    if policy is None:
        return asked
    if policy.valid_range is not None:
        return _in_range(policy.valid_range, asked, fractional)
    return next((v.value for v in sorted(policy.valid_values) if v.value >= asked), asked)


def _in_range(valid: ValidRange, asked: Fraction, fractional: bool) -> Fraction:
    """Up to the next step, counted in whole numbers, or in thousandths if all bounds are such."""
    if asked < valid.min.value or valid.step is None:
        return max(asked, valid.min.value)
    bounds = [q.value * 1000 for q in (valid.min, valid.max, valid.step) if q is not None]
    scale = 1000 if fractional and all(b.denominator == 1 for b in bounds) else 1
    low, step, goal = (-(-x * scale // 1) for x in (valid.min.value, valid.step.value, asked))
    steps = -(-(goal - low) // step) if step else 0
    return Fraction(low + step * steps, scale)


def _respects(capacity: Capacity, taken: Fraction) -> bool:
    policy = capacity.request_policy
    if policy is None or (policy.default is not None and policy.default.value == taken):
        return True
    valid = policy.valid_range
    if valid is not None:
        too_much = valid.max is not None and taken > valid.max.value
        between = valid.step is not None and valid.step.value != 0 and (taken - valid.min.value) % valid.step.value != 0
        return not too_much and not between
    return not policy.valid_values or taken in {v.value for v in policy.valid_values}
