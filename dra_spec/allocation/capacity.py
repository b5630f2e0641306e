"""How much of each capacity a request consumes, and whether the device still has it.

Source: k8s.io/dynamic-resource-allocation v0.37.2, structured/internal/incubating, consumable_capacity.go; KEP-5075.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import attrs

from dra_spec.allocation.errors import FatalAllocation
from dra_spec.allocation.state import Amounts
from dra_spec.resources.quantity import Quantity
from dra_spec.resources.slices import Capacity, RequestPolicy, ValidRange

INT64_MAX = 2**63 - 1
_MILLI = Fraction(1, 1000)


@attrs.define(eq=False)
class Arithmetic:
    """Amounts in the release: steps are counted in whole numbers (thousandths if `fractions` and the range has only those), and what a
    64-bit integer cannot hold, or a negative amount, is an error.

    Two older defects: `wraps`: overflow wraps and negative amounts count. `grows`: what is chosen already is added to a request that does
    not fit in 64 bits, in place, so that it grows each time it is looked at; `grown` keeps by how much in this attempt.
    """

    wraps: bool = False
    grows: bool = False
    grown: dict[int, Fraction] = attrs.field(factory=dict)

    def consumed(self, wanted: Amounts, capacities: Mapping[str, Capacity], fractions: bool) -> dict[str, Quantity]:
        """What a selection of the device consumes of each of its capacities. Raises FatalAllocation."""
        amounts = {}
        for name, capacity in capacities.items():
            amount = self._amount(name, self._as_it_is_now(wanted.get(name)), capacity, fractions)
            if amount.value < 0 and not self.wraps:
                raise FatalAllocation(f"capacity {name}: the amount is negative: {amount}")
            amounts[name] = amount
        return amounts

    def fits(self, wanted: Amounts, capacities: Mapping[str, Capacity], held: Amounts, chosen: Amounts, fractions: bool) -> bool:
        """Whether the device has each wanted capacity, policies allow the amounts, and they fit beside what other claims hold and what
        this attempt has chosen. Raises FatalAllocation."""
        if any(name not in capacities for name in wanted):
            return False
        for name, amount in self.consumed(wanted, capacities, fractions).items():
            capacity = capacities[name]
            if capacity.request_policy and self.violates(amount, capacity.request_policy, fractions):
                return False
            before = held[name].value if name in held else Fraction(0)
            more = chosen[name].value if name in chosen else Fraction(0)
            if self.grows and name in wanted and name not in held and _beyond_64_bits(amount):
                self.grown[id(wanted[name])] = self.grown.get(id(wanted[name]), Fraction(0)) + more
            if before + more + amount.value > capacity.value.value:
                return False
        return True

    def _as_it_is_now(self, wanted: Quantity | None) -> Quantity | None:
        growth = self.grown.get(id(wanted))
        return wanted + Quantity(growth) if wanted is not None and growth else wanted

    def _amount(self, name: str, wanted: Quantity | None, capacity: Capacity, fractions: bool) -> Quantity:
        policy = capacity.request_policy
        if wanted is None:
            return policy.default if policy and policy.default is not None else capacity.value
        if policy and policy.valid_range:
            return self._rounded_up(name, wanted, policy.valid_range, fractions)
        if policy:
            return next((v for v in policy.valid_values if wanted.value <= v.value), wanted)
        return wanted

    def _rounded_up(self, name: str, wanted: Quantity, valid: ValidRange, fractions: bool) -> Quantity:
        if wanted.value < valid.min.value:
            return valid.min
        if valid.step is None:
            return wanted
        if fractions and in_thousandths(valid):
            # a release with thousandths never wraps
            if not _whole_thousandths(wanted):
                raise _unrepresentable(name, wanted, "it is no whole number of thousandths")
            low, step, amount = (int(q.value / _MILLI) for q in (valid.min, valid.step, wanted))
            result = low + step * -(-(amount - low) // step)
            if result > INT64_MAX:
                raise _unrepresentable(name, wanted, "rounded up to the next step it leaves the range")
            return Quantity(result * _MILLI, valid.step.style)
        if wanted.value > INT64_MAX and not self.wraps:
            raise _unrepresentable(name, wanted, "it does not fit in 64 bits")
        low, step, amount = self._int(valid.min), self._int(valid.step), self._int(wanted)
        if step == 0:
            raise FatalAllocation(f"capacity {name}: the step of the valid range is zero")
        steps = _quotient(amount - low, step) + (_remainder(amount - low, step) != 0)
        result = low + step * steps
        if result > INT64_MAX and low >= 0 and not self.wraps:
            raise _unrepresentable(name, wanted, "rounded up to the next step it does not fit in 64 bits")
        return Quantity(Fraction(_wrapped(result)), valid.step.style)

    def violates(self, amount: Quantity, policy: RequestPolicy, fractions: bool) -> bool:
        """Whether the policy forbids the amount. The default is never forbidden; it is recognised by how it is written."""
        if policy.default is not None and _same_text(amount, policy.default):
            return False
        valid = policy.valid_range
        if valid is None:
            return bool(policy.valid_values) and amount not in policy.valid_values
        if valid.max is not None and amount.value > valid.max.value:
            return True
        if valid.step is None:
            return False
        if fractions and in_thousandths(valid):
            return not _whole_thousandths(amount) or (amount.value - valid.min.value) % valid.step.value != 0
        step = self._int(valid.step)
        return step == 0 or _remainder(self._int(amount) - self._int(valid.min), step) != 0

    def _int(self, quantity: Quantity) -> int:
        return _wrapped(quantity.rounded)


def in_thousandths(valid: ValidRange) -> bool:
    """Whether all bounds of the range are whole numbers of thousandths that fit in 64 bits."""
    bounds = [q for q in (valid.min, valid.max, valid.step) if q is not None]
    return all(_whole_thousandths(q) for q in bounds) and (valid.step is None or valid.step.value >= _MILLI)


def _whole_thousandths(quantity: Quantity) -> bool:
    thousandths = quantity.value / _MILLI
    return thousandths.denominator == 1 and -INT64_MAX - 1 <= thousandths <= INT64_MAX


def _beyond_64_bits(quantity: Quantity) -> bool:
    return abs(quantity.value) > INT64_MAX or (quantity.form is not None and not quantity.form[2])


def _same_text(left: Quantity, right: Quantity) -> bool:
    # upstream compares the parsed structures, which hold the text; a number beyond 64 bits is a pointer and so equal to nothing
    return not _beyond_64_bits(left) and (left is right or (bool(left.text) and left.text == right.text))


def _wrapped(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _quotient(number: int, by: int) -> int:
    """Division that rounds towards zero."""
    quotient = abs(number) // abs(by)
    return quotient if (number < 0) == (by < 0) else -quotient


def _remainder(number: int, by: int) -> int:
    return number - by * _quotient(number, by)


def _unrepresentable(name: str, wanted: Quantity, why: str) -> FatalAllocation:
    return FatalAllocation(f"capacity {name}: a request for {wanted} cannot be counted in the steps of the device's range: {why}")
