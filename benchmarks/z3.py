"""How long the solver takes: one node with 128 devices and 8 requests, and 50 nodes with more waiting pods than they hold.

    python benchmarks/z3.py [REPEATS]

Prints the median of the runs in seconds. Compare ratios between runs on one machine, not numbers between machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs

# the folder of a script comes first among the places of modules, and there this file would stand for the solver's module z3
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


from dra_spec.allocation.explain import explain
from dra_spec.allocation.whatif import Template, nodes_needed
from dra_spec.allocation.z3_place import place
from dra_spec.allocation.z3_problem import Call, Holding, Problem, WantedClaim
from dra_spec.allocation.z3_solve import first, one
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

DRIVER = "gpu.example.com"
CLASS = DeviceClass(metadata=Metadata(name="gpu"), spec=ClassSpec(selectors=(CelSelector(expression=f"device.driver == '{DRIVER}'"),)))


def device(i: int) -> Device:
    values = {"numa": i % 8, "memory": 40 + 40 * (i % 2), "serial": i}
    return Device(name=f"gpu-{i}", attributes={k: AttributeValue("int", v) for k, v in values.items()})


def slice_of(node: str, devices: int) -> ResourceSlice:
    spec = SliceSpec(
        driver=DRIVER, pool=Pool(name=node, resource_slice_count=1), node_name=node, devices=tuple(device(i) for i in range(devices))
    )
    return ResourceSlice(metadata=Metadata(name=f"slice-{node}"), spec=spec)


def claim(requests: int, count: int, *, match: bool = False, memory: int = 0) -> ClaimSpec:
    selectors = (CelSelector(expression=f"device.attributes['{DRIVER}'].memory > {memory}"),)
    leaf = ExactRequest(device_class_name="gpu", count=count, selectors=selectors)
    constraints = (Constraint(match_attribute=f"{DRIVER}/numa"),) if match else ()
    named = tuple(DeviceRequest(name=f"r{i}", exactly=leaf) for i in range(requests))
    return ClaimSpec(devices=DeviceClaim(requests=named, constraints=constraints))


def one_node(spec: ClaimSpec, in_use: int = 0) -> Problem:
    node = Node(metadata=Metadata(name="node"))
    return Problem.of([CLASS], [slice_of("node", 128)], node, [spec], [f"{DRIVER}/node/gpu-{i}" for i in range(in_use)])


def cluster(nodes: int, pods: int) -> Problem:
    names = tuple(f"node-{i}" for i in range(nodes))
    kinds = (claim(1, 1), claim(1, 2, match=True), claim(2, 2, memory=50))
    calls = tuple(Call(f"pod {i}", (WantedClaim(f"claim {i}", kinds[i % 3]),), names) for i in range(pods))
    held = tuple(Holding(f"{DRIVER}/{n}/gpu-{j}", "running") for i, n in enumerate(names) for j in range(i % 5))
    slices = tuple(slice_of(n, 16) for n in names)
    return Problem({"gpu": CLASS}, slices, {n: Node(metadata=Metadata(name=n)) for n in names}, calls, held)


def what_if(problem: Problem) -> int | None:
    return nodes_needed(problem, Template(Node(metadata=Metadata(name="new")), (slice_of("new", 16),))).needed


def measured(name: str, repeats: int, run: Callable[[], object]) -> None:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = run()
        times.append(time.perf_counter() - start)
    print(f"{name:<66} {statistics.median(times):7.3f} s   {answer}")


def main(repeats: int = 5) -> None:
    """Runs all of them."""
    fits, tight = one_node(claim(8, 2, match=True)), one_node(claim(8, 2, match=True), in_use=8)
    measured("128 devices, 8 requests for 2, one NUMA node: any allocation", repeats, lambda: one(fits) is not None)
    measured("the same: upstream's first allocation", repeats, lambda: first(fits) is not None)
    measured("128 devices, 8 requests for 2, one NUMA node, one short: none", repeats, lambda: one(attrs.evolve(tight)) is not None)
    many = one_node(claim(8, 4, memory=50), in_use=90)
    measured("128 devices, 8 requests for 4, most in use: why not", repeats, lambda: len(getattr(explain(many, "node"), "causes", ())))
    crowd = cluster(50, 600)
    measured("50 nodes with 16 devices, 600 pods of 3 kinds: how many more", repeats, lambda: what_if(crowd))
    few = cluster(50, 60)
    measured("50 nodes with 16 devices, 60 pods of 3 kinds: all together", repeats, lambda: place(few) is not None)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
