"""What a selector looks at, so that devices that look the same to it are asked once."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from dra_spec.resources.slices import Device
from dra_spec.selectors import Selector
from dra_spec.selectors.tree import Call, Ident, Literal, Node, Select

Name = tuple[str, str, str]  # attributes or capacity, domain, identifier


@attrs.frozen
class Reads:
    """The attributes and capacities that an expression reads, besides the driver and whether the device can be shared."""

    names: tuple[Name, ...]

    def seen(self, driver: str, device: Device) -> Hashable | None:
        """What the expression sees of the device; None if a name is there both with and without its domain."""
        values: list[Hashable] = [driver, device.allow_multiple_allocations]
        for kind, domain, ident in self.names:
            known = device.attributes if kind == "attributes" else device.capacity
            keys = [k for k in ([f"{domain}/{ident}", ident] if domain == driver else [f"{domain}/{ident}"]) if k in known]
            if len(keys) > 1:
                return None
            values.append((device.attributes[keys[0]] if kind == "attributes" else device.capacity[keys[0]].value) if keys else None)
        return tuple(values)


def reads_of(selector: Selector) -> Reads | None:
    """The names, if each use of the device is a plain look-up of a name that stands in the expression; else None."""
    names: dict[Name, None] = {}
    stack = [selector.tree]
    while stack:
        node = stack.pop()
        if isinstance(node, Select) and not node.test and _is_device(node.operand) and node.field in ("driver", "allowMultipleAllocations"):
            continue
        name = _name(node)
        if name is not None:
            names[name] = None
        elif isinstance(node, Ident) and node.name == "device":
            return None
        else:
            stack.extend(node.children())
    return Reads(tuple(names))


def _is_device(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == "device"


def _step(node: Node) -> tuple[Node, str] | None:
    """`x.name` or `x["name"]`."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function == "_[_]" and node.target is None and isinstance(node.args[1], Literal):
        key = node.args[1].value
        return (node.args[0], key) if isinstance(key, str) else None
    return None


def _name(node: Node) -> Name | None:
    """device.attributes[domain].ident, in any of its spellings; has() of it reads the same."""
    last = _step(node)
    middle = _step(last[0]) if last and not _is_test(last[0]) else None
    if last is None or middle is None:
        return None
    maps, domain = middle
    if isinstance(maps, Select) and not maps.test and _is_device(maps.operand) and maps.field in ("attributes", "capacity"):
        return maps.field, domain, last[1]
    return None


def _is_test(node: Node) -> bool:
    return isinstance(node, Select) and node.test
