"""How long the reference allocator takes for a claim on 1,000 nodes with 8 devices each: `python benchmarks/allocate.py`.

One run makes the inventory, compiles the selector and asks for every node, as the scheduler's Filter does for a pod. The claim wants three
devices that a selector chooses and a constraint ties together; on a third of the nodes the devices do not suffice. Prints the median of
five runs in seconds, and the runs.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter

from dra_spec.allocation import Allocator, DoesNotFit, Inventory, Settings
from dra_spec.resources import (
    AttributeValue,
    Capacity,
    CelSelector,
    ClaimSpec,
    Constraint,
    Device,
    DeviceClass,
    DeviceRequest,
    ExactRequest,
    Metadata,
    Node,
    Quantity,
    ResourceSlice,
)
from dra_spec.resources.claims import DeviceClaim
from dra_spec.resources.slices import ClassSpec, Pool, SliceSpec

NODES = 1000
DEVICES = 8
RUNS = 5
DRIVER = "gpu.example.com"
CLASS = DeviceClass(metadata=Metadata(name="gpu"), spec=ClassSpec(selectors=(CelSelector(expression=f'device.driver == "{DRIVER}"'),)))
SELECTOR = CelSelector(
    expression=f'device.attributes["{DRIVER}"].model == "large" && device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)


def device(node: int, number: int) -> Device:
    """On each node the devices of one root have the same number modulo 2; on every third node too few of them are large."""
    large = number >= (5 if node % 3 == 0 else 2)
    return Device(
        name=f"gpu-{number}",
        attributes={
            "model": AttributeValue("string", "large" if large else "small"),
            "root": AttributeValue("int", number % 2),
            "uuid": AttributeValue("string", f"gpu-{node}-{number}"),
        },
        capacity={"memory": Capacity(value=Quantity.parse("80Gi" if large else "20Gi"))},
    )


def slices() -> list[ResourceSlice]:
    return [
        ResourceSlice(
            metadata=Metadata(name=f"node-{n}-gpus"),
            spec=SliceSpec(
                driver=DRIVER,
                node_name=f"node-{n}",
                pool=Pool(name=f"node-{n}", generation=1, resource_slice_count=1),
                devices=tuple(device(n, i) for i in range(DEVICES)),
            ),
        )
        for n in range(NODES)
    ]


def claim() -> ClaimSpec:
    request = DeviceRequest(name="gpus", exactly=ExactRequest(device_class_name="gpu", selectors=(SELECTOR,), count=3))
    return ClaimSpec(devices=DeviceClaim(requests=(request,), constraints=(Constraint(match_attribute=f"{DRIVER}/root"),)))


def run(published: list[ResourceSlice], nodes: list[Node], wanted: ClaimSpec) -> tuple[float, Counter[str]]:
    """(seconds, how many nodes fit and do not)."""
    found: Counter[str] = Counter()
    start = time.perf_counter()
    allocator = Allocator(Inventory.of([CLASS], published, nodes), Settings.of("1.37"))
    for node in nodes:
        try:
            allocator.allocate([wanted], node)
            found["fit"] += 1
        except DoesNotFit:
            found["no-fit"] += 1
    return time.perf_counter() - start, found


def main() -> None:
    published, wanted = slices(), claim()
    nodes = [Node(metadata=Metadata(name=f"node-{n}")) for n in range(NODES)]
    times = []
    for _ in range(RUNS):
        seconds, found = run(published, nodes, wanted)
        times.append(seconds)
    runs = " ".join(f"{t:.2f}" for t in times)
    print(f"reference allocator, {NODES} nodes x {DEVICES} devices: median {statistics.median(times):.2f} s ({runs}); {dict(found)}")


if __name__ == "__main__":
    main()
