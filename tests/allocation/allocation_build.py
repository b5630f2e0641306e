"""Short ways to write inventories and claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dra_spec.allocation import Allocator, DoesNotFit, Inventory
from dra_spec.resources import (
    AttributeValue,
    CelSelector,
    ClaimSpec,
    Constraint,
    Device,
    DeviceClass,
    DeviceRequest,
    ExactRequest,
    Metadata,
    Node,
    ResourceSlice,
)
from dra_spec.resources.claims import DeviceClaim
from dra_spec.resources.slices import ClassSpec, Pool, SliceSpec

DRIVER = "d.example.com"
CLASS = DeviceClass(metadata=Metadata(name="c"), spec=ClassSpec(selectors=(CelSelector(expression=f"device.driver == '{DRIVER}'"),)))


def node(name: str = "n", **labels: str) -> Node:
    return Node(metadata=Metadata(name=name, labels=labels))


def device(name: str, *, attributes: dict[str, int | str] | None = None, **more: Any) -> Device:
    values = {k: AttributeValue("int" if isinstance(v, int) else "string", v) for k, v in (attributes or {}).items()}
    return Device(name=name, attributes=values, **more)


def slice_of(
    devices: Sequence[Device | str],
    *,
    name: str = "s",
    driver: str = DRIVER,
    pool: str = "p",
    generation: int = 1,
    count: int = 1,
    **more: Any,
) -> ResourceSlice:
    read = tuple(device(d) if isinstance(d, str) else d for d in devices)
    where = more if {"node_selector", "all_nodes", "per_device_node_selection", "node_name"} & set(more) else {"node_name": "n"} | more
    return ResourceSlice(
        metadata=Metadata(name=name),
        spec=SliceSpec(driver=driver, pool=Pool(name=pool, generation=generation, resource_slice_count=count), devices=read, **where),
    )


def exact(count: int = 1, *selectors: str, **more: Any) -> ExactRequest:
    mode = {"allocation_mode": "All"} if count == 0 else {"count": count}
    return ExactRequest(device_class_name="c", selectors=tuple(CelSelector(expression=s) for s in selectors), **mode, **more)


def claim(*requests: ExactRequest | DeviceRequest, constraints: tuple[Constraint, ...] = ()) -> ClaimSpec:
    named = tuple(r if isinstance(r, DeviceRequest) else DeviceRequest(name=f"r{i}", exactly=r) for i, r in enumerate(requests))
    return ClaimSpec(devices=DeviceClaim(requests=named, constraints=constraints))


def allocate(
    slices: Sequence[ResourceSlice], claims: Sequence[ClaimSpec], in_use: Sequence[str] = (), at: Node | None = None
) -> list[list[str]] | None:
    """For each claim its devices as request=device, in order; None if they do not fit. `in_use`: device names in pool p."""
    at = at or node()
    taken = frozenset(f"{DRIVER}/p/{name}" for name in in_use)
    try:
        found = Allocator(Inventory.of([CLASS], slices, [at])).allocate(claims, at, taken)
    except DoesNotFit:
        return None
    return [[f"{r.request}={r.device}" for r in c.results] for c in found]
