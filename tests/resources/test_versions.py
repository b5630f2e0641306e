"""Older API versions, workloads, and writing objects back."""

# ruff: noqa: E501 - messages and table rows stand on one line

from __future__ import annotations

import json
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_spec.resources import (
    AttributeValue,
    Capacity,
    CelSelector,
    Constraint,
    Device,
    DeviceRequest,
    ExactRequest,
    Metadata,
    Quantity,
    ResourceClaim,
    ResourceSlice,
    SubRequest,
    Taint,
    Toleration,
    dump,
    load_text,
)
from dra_spec.resources.claims import ClaimSpec, DeviceClaim
from dra_spec.resources.slices import CounterConsumption, Pool, SliceSpec

Messages = Callable[[str], list[str]]

FLAT = """\
apiVersion: resource.k8s.io/{version}
kind: ResourceClaim
metadata: {{name: one}}
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.example.com
      count: 2
      tolerations:
      - operator: Exists
"""
EXACT = """\
apiVersion: resource.k8s.io/{version}
kind: ResourceClaim
metadata: {{name: one}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        count: 2
        tolerations:
        - operator: Exists
"""


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_flat_requests_of_old_claims(version: str) -> None:
    (old,) = load_text(FLAT.format(version=version), file="m.yaml").claims
    (new,) = load_text(EXACT.format(version="v1")).claims
    assert old == new
    assert old.spec.requests[0].exactly is not None
    assert old.spec.requests[0].exactly.tolerations[0].at.line == 11  # the lines are those of the file


@pytest.mark.parametrize("version", ["v1beta2", "v1"])
def test_exact_requests_of_new_claims(version: str) -> None:
    assert load_text(EXACT.format(version=version)).claims[0].spec.requests[0].exactly is not None


def test_flat_requests_in_templates() -> None:
    text = "\n".join(f"  {line}" if i > 3 else line for i, line in enumerate(FLAT.format(version="v1beta1").splitlines()))
    text = text.replace("ResourceClaim", "ResourceClaimTemplate").replace("spec:", "spec:\n  spec:", 1)
    (template,) = load_text(text).templates
    assert template.spec.spec == load_text(EXACT.format(version="v1")).claims[0].spec


SLICE = """\
apiVersion: resource.k8s.io/{version}
kind: ResourceSlice
metadata: {{name: s}}
spec:
  driver: d.example.com
  allNodes: true
  pool: {{name: p, generation: 0, resourceSliceCount: 1}}
  devices:
"""
BASIC = "  - name: d-0\n    basic:\n      attributes: {{a: {{bool: true}}}}\n      capacity: {{m: {capacity}}}\n"


@pytest.mark.parametrize(("version", "capacity"), [("v1beta1", "{value: 1k}"), ("v1alpha3", "1k")])
def test_wrapped_devices_of_old_slices(version: str, capacity: str) -> None:
    (read,) = load_text(SLICE.format(version=version) + BASIC.format(capacity=capacity)).slices
    (device,) = read.spec.devices
    assert device.attributes == {"a": AttributeValue("bool", True)}
    assert device.capacity == {"m": Capacity(value=Quantity.of(1000))}


def test_a_wrapper_in_v1_is_named_and_what_else_is_missing_too(messages: Messages) -> None:
    text = SLICE.format(version="v1").replace("  driver: d.example.com\n", "") + BASIC.format(capacity="{value: 1k}")
    assert messages(text) == [
        "m.yaml:9: spec.devices[0].basic: the field 'basic' belongs to v1beta1: in v1 what it holds (attributes, capacity) stands in the device itself",
        "m.yaml:5: spec.driver: the required field 'driver' is missing",
    ]


def test_selectors_of_old_taint_rules_are_gone(messages: Messages) -> None:
    text = "apiVersion: resource.k8s.io/v1alpha3\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector:\n    deviceClassName: x\n"
    text += "  taint: {key: a, effect: NoSchedule}\n"
    assert messages(text) == [
        "m.yaml:6: spec.deviceSelector.deviceClassName: the field 'deviceClassName' was removed in Kubernetes 1.35: a rule selects devices by driver, pool and device"
    ]


WORKLOAD = """\
apiVersion: {group}
kind: {kind}
metadata: {{name: web, namespace: ns}}
spec:
  {count}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c}}]
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: one}}]
"""


@pytest.mark.parametrize(
    ("kind", "count", "pods", "warning"),
    [
        ("Deployment", "replicas: 2", 2, ""),
        ("Deployment", "paused: false", 1, ""),
        ("Deployment", "replicas: 0", 0, "Deployment web has no pods"),
        ("Deployment", "replicas: 7", 3, "Deployment web wants 7 pods: only 3 are modelled"),
        ("ReplicaSet", "replicas: 1", 1, ""),
        ("StatefulSet", "replicas: 3", 3, ""),
        ("DaemonSet", "minReadySeconds: 1", 2, ""),
        ("Job", "parallelism: 2", 2, ""),
        ("Job", "{parallelism: 3, completions: 1}", 1, ""),
    ],
)
def test_pods_of_workloads(kind: str, count: str, pods: int, warning: str) -> None:
    nodes = "".join(f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{i}}}\n" for i in range(2))
    text = WORKLOAD.format(group="batch/v1" if kind == "Job" else "apps/v1", kind=kind, count=count.strip("{}").replace(", ", "\n  "))
    loaded = load_text(text + nodes, max_replicas=3)
    assert [p.name for p in loaded.pods] == [f"web-{i}" for i in range(pods)]
    assert all(p.namespace == "ns" and p.workload == f"{kind} web" and p.metadata.labels == {"app": "web"} for p in loaded.pods)
    assert [w.message for w in loaded.warnings] == ([warning] if warning else [])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("template:", "tempalte:", "m.yaml:6: spec.tempalte: unknown field 'tempalte', did you mean 'template'?"),
        (
            "resourceClaims:",
            "resourceclaims:",
            "m.yaml:10: spec.template.spec.resourceclaims: unknown field 'resourceclaims', did you mean 'resourceClaims'?",
        ),
        ("replicas: 2", "replicas: two", "m.yaml:5: spec.replicas: found the string 'two', expected an integer of at least 0"),
    ],
)
def test_wrong_workloads(messages: Messages, old: str, new: str, message: str) -> None:
    text = WORKLOAD.format(group="apps/v1", kind="Deployment", count="replicas: 2")
    assert messages(text.replace(old, new, 1))[0] == message


labels = st.from_regex(r"[a-z]([a-z0-9-]{0,5}[a-z0-9])?", fullmatch=True)
quantities = st.builds(lambda n, s: Quantity.parse(f"{n}{s}"), st.integers(0, 2000), st.sampled_from(["", "m", "k", "Ki", "Gi", "e2"]))
attribute_values = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda v: AttributeValue("int", v)),
    st.booleans().map(lambda v: AttributeValue("bool", v)),
    st.sampled_from(["", "yes", "1", "null", "a: b", "#x", "é", "1e3", "~"]).map(lambda v: AttributeValue("string", v)),
    st.sampled_from(["1.2.3", "0.0.1-rc.1+b"]).map(lambda v: AttributeValue("version", v)),
    st.lists(st.integers(0, 9), min_size=1, max_size=3).map(lambda v: AttributeValue("ints", tuple(v))),
    st.lists(st.sampled_from(["on", "b"]), min_size=1, max_size=3).map(lambda v: AttributeValue("strings", tuple(v))),
)
taints = st.builds(lambda k, e: Taint(key=k, effect=e), labels, st.sampled_from(["None", "NoSchedule", "NoExecute", "Future"]))
devices = st.builds(
    lambda n, a, c, t, u, b: Device(
        name=n,
        attributes=a,
        capacity=c,
        taints=tuple(t),
        consumes_counters=tuple(u),
        binding_conditions=b,
        binding_failure_conditions=tuple(f"no-{x}" for x in b),
    ),
    labels,
    st.dictionaries(st.sampled_from(["a", "b", "x.com/a"]), attribute_values, max_size=3),
    st.dictionaries(st.sampled_from(["m", "x.com/m"]), quantities.map(lambda q: Capacity(value=q)), max_size=2),
    st.lists(taints, max_size=2),
    st.lists(quantities.map(lambda q: CounterConsumption(counter_set="s", counters={"c": q})), max_size=1),
    st.sampled_from([(), ("ready",), ("ready", "attached")]),
)
slices = st.builds(
    lambda n, d, g: ResourceSlice(
        metadata=Metadata(name=n),
        spec=SliceSpec(driver="d.example.com", all_nodes=True, pool=Pool(name="p", generation=g, resource_slice_count=1), devices=tuple(d)),
    ),
    labels,
    st.lists(devices, max_size=3, unique_by=lambda d: d.name),
    st.integers(0, 2**63 - 1),
)
selectors = st.lists(st.sampled_from(["true", "device.driver == 'a'\n", "  x"]).map(lambda e: CelSelector(expression=e)), max_size=2).map(
    tuple
)
tolerations = st.lists(
    st.builds(lambda k, s: Toleration(key=k, operator="Exists", toleration_seconds=s), labels, st.none() | st.integers(0, 9)), max_size=2
).map(tuple)
exact = st.builds(
    lambda c, s, n, t, a: ExactRequest(device_class_name=c, selectors=s, count=n, tolerations=t, admin_access=a),
    labels,
    selectors,
    st.none() | st.integers(1, 5),
    tolerations,
    st.none() | st.booleans(),
)
requests = st.one_of(
    st.builds(lambda n, e: DeviceRequest(name=n, exactly=e), labels, exact),
    st.builds(
        lambda n, s: DeviceRequest(name=n, first_available=(SubRequest(name="sub", device_class_name="c", selectors=s),)), labels, selectors
    ),
)
claims = st.builds(
    lambda n, r, m: ResourceClaim(
        metadata=Metadata(name=n, namespace="ns"),
        spec=ClaimSpec(devices=DeviceClaim(requests=tuple(r), constraints=(Constraint(match_attribute="x.com/a"),) if m else ())),
    ),
    labels,
    st.lists(requests, max_size=3, unique_by=lambda r: r.name),
    st.booleans(),
)


@settings(max_examples=80, deadline=None)
@given(st.one_of(slices, claims))
def test_writing_and_reading_gives_an_equal_object(obj: ResourceSlice | ResourceClaim) -> None:
    text = json.dumps(dump(obj))
    (read,) = load_text(text).objects
    assert read == obj
    assert dump(read) == dump(obj)


def test_places_take_no_part_in_equality() -> None:
    one, two = load_text(EXACT.format(version="v1")).claims[0], load_text("# moved\n\n" + EXACT.format(version="v1")).claims[0]
    assert one == two
    assert one.where("spec").line != two.where("spec").line
    assert attrs.evolve(one, metadata=Metadata(name="other")) != two
