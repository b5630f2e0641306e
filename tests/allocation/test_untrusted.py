"""Manifests from others: whatever stands in a field, the answer is a result or a located problem, never another exception."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dra_spec.allocation import Allocator, DoesNotFit, FatalAllocation, Inventory, UnsupportedFeature, check_allocation, features_used
from dra_spec.resources import ManifestError, check, load_text

DATA = Path(__file__).parent.parent / "data" / "manifests"
RICH = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: t}
spec:
  driver: gpu.example.com
  perDeviceNodeSelection: true
  pool: {name: q, generation: 1, resourceSliceCount: 2}
  devices:
  - name: a
    nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: x, operator: Gt, values: ['1']}]}]}
    attributes: {a: {ints: [1]}, v: {version: 1.0.0}}
    consumesCounters: [{counterSet: s, counters: {m: {value: 1}}}]
    taints: [{key: k, effect: NoSchedule}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: u}
spec:
  driver: gpu.example.com
  allNodes: true
  pool: {name: q, generation: 1, resourceSliceCount: 2}
  sharedCounters: [{name: s, counters: {m: {value: 1}}}]
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: old, namespace: work}
spec:
  devices:
    requests:
    - {name: r, deviceClassName: gpu.example.com, allocationMode: All, tolerations: [{operator: Exists}], capacity: {requests: {m: 1Gi}}}
    constraints: [{matchAttribute: gpu.example.com/model}]
    config: [{opaque: {driver: gpu.example.com, parameters: {a: 1}}}]
status:
  allocation: {devices: {results: [{request: r, driver: gpu.example.com, pool: p, device: d}]}}
  reservedFor: [{resource: pods, name: x, uid: y}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: work}
spec:
  replicas: 2
  template:
    spec:
      containers: [{name: c, resources: {claims: [{name: g}], limits: {cpu: 1}}}]
      resourceClaims: [{name: g, resourceClaimName: old}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: k, effect: NoExecute}}
"""


def documents() -> list[Any]:
    text = (
        (DATA / "good" / "cluster.yaml").read_text()
        + "\n---\n"
        + (DATA / "good" / "pod.json").read_text().replace("\t", " ")
        + "\n---\n"
        + RICH
    )
    return list(YAML(typ="safe", pure=True).load_all(text))


DOCUMENTS = documents()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += places(inner, (*path, key))
    return found


PLACES = [p for p in places(DOCUMENTS) if p]
VALUES: list[Any] = [
    None,
    0,
    -1,
    2**70,
    True,
    "",
    "x",
    "{{ .X }}",
    "1Gi",
    [],
    [None],
    [1],
    ["a", "a"],
    {},
    {"": None},
    {"a": {"b": 1}},
    "é\u0000"[:1],
    "All",
    "v1alpha2",
]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(VALUES), st.booleans()), min_size=1, max_size=3))
def test_any_value_anywhere(changes: list[tuple[tuple[Any, ...], Any, bool]]) -> None:
    content = copy.deepcopy(DOCUMENTS)
    for path, value, remove in changes:
        target = content
        try:
            for key in path[:-1]:
                target = target[key]
            if remove:
                del target[path[-1]]
            else:
                target[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    text = "\n---\n".join(json.dumps(d) for d in content)
    try:
        loaded = load_text(text)
        check(loaded)
        check_allocation(loaded)
        features_used(loaded.objects)
    except ManifestError:
        return
    allocator = Allocator(Inventory.of_loaded(loaded))
    for spec in [c.spec for c in loaded.claims] + [t.spec.spec for t in loaded.templates]:
        try:
            allocator.allocate([spec], "node-a")
        except (DoesNotFit, FatalAllocation, UnsupportedFeature):
            continue
