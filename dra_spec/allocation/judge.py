"""What is true of one device and one request, whatever else is allocated: selectors, node selection, capacity, attributes."""

from __future__ import annotations

import functools
from collections.abc import Hashable

import attrs

from dra_spec.allocation.capacity import Arithmetic
from dra_spec.allocation.constraints import attribute
from dra_spec.allocation.derived import derived
from dra_spec.allocation.errors import FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import PoolDevice
from dra_spec.allocation.nodes import node_matches
from dra_spec.allocation.plan import Leaf
from dra_spec.allocation.reads import Reads, reads_of
from dra_spec.allocation.settings import Settings
from dra_spec.allocation.state import AllocatedState, Amounts
from dra_spec.resources.core import Node
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.slices import AttributeValue, Device
from dra_spec.selectors import Environment, Selector, SelectorError, SelectorSyntaxError, compile_selector


@attrs.frozen(eq=False)
class Answers:
    """Selectors are compiled once and asked once about devices that look the same to them. Shared by all attempts on an inventory.

    `matches`: by expression, and what it sees of the device, or the device's name if that cannot be told.
    """

    selectors: dict[str, tuple[Selector, Reads | None]] = attrs.field(factory=dict)
    matches: dict[tuple[str, Hashable], bool | SelectorError] = attrs.field(factory=dict)
    derived: dict[tuple[str, str], AttributeValue] = attrs.field(factory=dict)


@functools.lru_cache(maxsize=1024)
def _compile(selector: CelSelector, environment: Environment) -> tuple[Selector, Reads | None]:
    """Compiling takes milliseconds, and the same selectors come back in other inventories. Raises SelectorSyntaxError."""
    compiled = compile_selector(selector.expression, selector.at, environment)
    return compiled, reads_of(compiled)


@attrs.frozen(eq=False)
class DeviceJudge:
    """Judges devices for one attempt. `state`: what other claims hold, or None if the caller knows whole devices only."""

    settings: Settings
    node: Node
    state: AllocatedState | None
    answers: Answers
    arithmetic: Arithmetic = attrs.field(init=False)

    @arithmetic.default
    def _arithmetic(self) -> Arithmetic:
        return Arithmetic(self.settings.rules.capacity_wraps, self.settings.rules.requests_grow)

    def selectable(self, leaf: Leaf, device: PoolDevice) -> bool:
        """Class and request selectors, then the device's own node selection: the order decides which errors surface."""
        if self.state is None and device.device.allow_multiple_allocations and self.settings.undecided:
            raise UnsupportedFeature("devices with allowMultipleAllocations (consumable capacity)", device.device.at)
        if device.device.binding_conditions and (self.settings.stable or not self.settings.has("DeviceBindingAndStatus")):
            return False
        if not all(self.matches(selector, device) for selector in leaf.selectors):
            return False
        return not device.slice.spec.per_device_node_selection or node_matches(self.node, device.device)

    def matches(self, selector: CelSelector, device: PoolDevice) -> bool:
        """Whether the selector holds. Raises FatalAllocation if it does not compile or fails on the device, and UnsupportedFeature."""
        compiled, reads = self._compiled(selector)
        self._check_attributes(device.device)
        seen = reads.seen(device.driver, device.device) if reads else None
        key = (selector.expression, device.name if seen is None else seen)
        if key not in self.answers.matches:
            if seen is None and device.view.ambiguous:
                raise UnsupportedFeature(
                    f"a name that is given both with and without its domain ({device.view.ambiguous[0]})", device.device.at
                )
            self.answers.matches[key] = compiled.matches(device.view)
        answer = self.answers.matches[key]
        if isinstance(answer, SelectorError):
            raise FatalAllocation(str(attrs.evolve(answer, device=device.name)))
        return answer

    def _compiled(self, selector: CelSelector) -> tuple[Selector, Reads | None]:
        if selector.expression not in self.answers.selectors:
            try:
                self.answers.selectors[selector.expression] = _compile(selector, self.settings.environment)
            except SelectorSyntaxError as error:
                raise FatalAllocation(str(error)) from None
        return self.answers.selectors[selector.expression]

    def _check_attributes(self, device: Device) -> None:
        for name, value in device.attributes.items():
            if not value.kind:
                raise FatalAllocation(f"device {device.name}: the attribute {name} has a value of a type that is not known")
            if value.is_list and self.settings.rules.lists_break_selectors and not self.settings.has("ListTypeAttributes"):
                raise FatalAllocation(f"device {device.name}: the attribute {name} is a list, and DRAListTypeAttributes is off")

    def attribute(self, leaf: Leaf, device: PoolDevice, name: str) -> AttributeValue | None:
        """What a constraint sees. A derived attribute of the request hides the device's own of the same name.

        Raises FatalAllocation if a derived attribute cannot be computed, and UnsupportedFeature.
        """
        expression = next((d.expression for d in leaf.request.derived_attributes if d.name == name), None)
        if expression is not None:
            key = (expression, device.name)
            if key not in self.answers.derived:
                self.answers.derived[key] = derived(name, expression, device.view, self.settings.environment)
            return self.answers.derived[key]
        found = attribute(device, name)
        if found is not None and found.is_list and self.settings.undecided and not self.settings.has("ListTypeAttributes"):
            raise UnsupportedFeature(f"a constraint on the list attribute {name}", device.device.at)
        return found

    def has_capacity_in_all(self, leaf: Leaf, device: PoolDevice) -> bool:
        held = self.settings.rules.all_devices_consumed(self.state or AllocatedState(), device.name)
        return self.has_capacity(leaf, device, held, {})

    def has_capacity(self, leaf: Leaf, device: PoolDevice, held: Amounts, chosen: Amounts) -> bool:
        """Whether the wanted amounts fit beside those that others hold and those chosen in this attempt. Raises FatalAllocation."""
        if not self.settings.shares:
            return True
        return self.arithmetic.fits(leaf.wanted, device.device.capacity, held, chosen, self.settings.has("FractionalCapacityRange"))

    def consumed(self, leaf: Leaf, device: PoolDevice) -> Amounts:
        """What a share for the request consumes of each capacity. Raises FatalAllocation."""
        return self.arithmetic.consumed(leaf.wanted, device.device.capacity, self.settings.has("FractionalCapacityRange"))
