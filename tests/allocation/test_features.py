"""What manifests use and the tool does not encode is named with its place; odd classes and pools are warnings."""

# ruff: noqa: E501 - messages and table rows stand on one line

from __future__ import annotations

from pathlib import Path

import pytest

from dra_spec.allocation import Allocator, Inventory, Settings, check_allocation, features_used
from dra_spec.allocation.gates import GATES
from dra_spec.resources import ManifestError, load_checked, load_text

DATA = Path(__file__).parent.parent / "data" / "manifests"
HEAD = "apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: x}}\n"
SLICE = HEAD.format(kind="ResourceSlice") + "spec:\n  driver: d.example.com\n  allNodes: true\n  pool: {name: p, resourceSliceCount: 1}\n"
CLAIM = HEAD.format(kind="ResourceClaim") + "spec:\n  devices:\n    requests:\n    - name: a\n      exactly:\n        deviceClassName: c\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  containers: [{name: c}]\n"


def named(text: str) -> list[str]:
    return [str(f) for f in features_used(load_text(text, file="m.yaml").objects)]


@pytest.mark.parametrize(
    ("text", "features"),
    [
        (
            SLICE
            + "  devices:\n  - {name: a, bindingConditions: [r], bindingFailureConditions: [f], taints: [{key: k, effect: NoExecute}]}\n",
            [],
        ),
        (
            SLICE + "  devices:\n  - {name: a}\n  - {name: b, allowMultipleAllocations: true}\n",
            ["m.yaml:10: spec.devices[1]: devices with allowMultipleAllocations (consumable capacity)"],
        ),
        (SLICE + "  skipNodeOperations: ['*']\n", ["m.yaml:8: spec.skipNodeOperations: skipNodeOperations (optional node operations)"]),
        (
            SLICE
            + "  devices:\n  - name: a\n    consumesCounters: [{counterSet: s, counters: {c: {value: 1}}, compatibilityGroups: [g]}]\n",
            ["m.yaml:9: spec.devices[0]: compatibility groups of devices"],
        ),
        (
            SLICE + "  devices:\n  - {name: a, nodeAllocatableResources: {cpu: {}}}\n",
            ["m.yaml:9: spec.devices[0]: nodeAllocatableResources of devices"],
        ),
        (
            SLICE + "  devices:\n  - {name: a, attributes: {x: {int: 1}, d.example.com/x: {int: 2}}}\n",
            ["m.yaml:9: spec.devices[0]: a name that is given both with and without its domain (d.example.com/x)"],
        ),
        (CLAIM, []),
        (CLAIM + "        derivedAttributes: [{name: a}]\n", ["m.yaml:9: spec.devices.requests[0].exactly: derived attributes"]),
        (
            CLAIM + "        tolerations:\n        - {operator: Exists, tolerationSeconds: 5}\n",
            ["m.yaml:11: spec.devices.requests[0].exactly.tolerations[0]: eviction by device taints (tolerationSeconds)"],
        ),
        (
            CLAIM + "        selectors:\n        - cel: {expression: 'sets.contains([1], [1])'}\n",
            [],
        ),
        (
            CLAIM + "status: {allocation: {devices: {results: []}}}\n",
            ["m.yaml:10: status: claims that are allocated or reserved from the start"],
        ),
        (POD, []),
        (POD + "  schedulingGroup: {podGroupName: g}\n", ["m.yaml:6: spec.schedulingGroup: pod groups"]),
        (POD + "  nodeSelector: {zone: a}\n", ["m.yaml:5: spec: node selectors and node affinity of pods"]),
        (POD + "  schedulingGates: [{name: g}]\n", ["m.yaml:5: spec: scheduling gates"]),
        (
            POD.replace("{name: c}", "{name: c, resources: {limits: {deviceclass.resource.kubernetes.io/c: 1, cpu: 1}}}"),
            ["m.yaml:5: spec.containers[0].resources: extended resources backed by DRA (deviceclass.resource.kubernetes.io/c)"],
        ),
        (
            POD.replace("{name: c}", "{name: c, resources: {limits: {example.com/gpu: 1}}}")
            + "---\n"
            + HEAD.format(kind="DeviceClass")
            + "spec: {extendedResourceName: example.com/gpu}\n",
            ["m.yaml:5: spec.containers[0].resources: extended resources backed by DRA (example.com/gpu)"],
        ),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\nspec:\n  unschedulable: true\n", ["m.yaml:5: spec: node taints"]),
        (
            "apiVersion: scheduling.k8s.io/v1alpha2\nkind: PodGroup\nmetadata: {name: g}\nspec: {}\n",
            ["m.yaml:4: spec.resourceClaims: pod groups"],
        ),
        (
            HEAD.format(kind="DeviceTaintRule") + "spec:\n  taint: {key: k, effect: NoExecute}\n",
            ["m.yaml:5: spec.taint: eviction by device taint rules"],
        ),
        (HEAD.format(kind="DeviceTaintRule") + "spec:\n  taint: {key: k, effect: NoSchedule}\n", []),
    ],
)
def test_features(text: str, features: list[str]) -> None:
    assert named(text) == features


def test_what_the_settings_decide_is_not_named() -> None:
    everything = Settings("1.37", frozenset(GATES), "experimental")
    use = "{counterSet: s, counters: {c: {value: 1}}, compatibilityGroups: [g]}"
    text = (
        SLICE
        + "  skipNodeOperations: ['*']\n  devices:\n"
        + f"  - {{name: a, allowMultipleAllocations: true, attributes: {{cpus: {{ints: [1]}}}}, consumesCounters: [{use}]}}\n---\n"
        + CLAIM
        + "        derivedAttributes: [{name: a/b, expression: '1'}]\n    constraints: [{matchAttribute: d.example.com/cpus}]\n"
    )
    objects = load_text(text, file="m.yaml").objects
    assert features_used(objects, everything) == ()
    assert {f.name.split(" (")[0] for f in features_used(objects)} == {
        "skipNodeOperations",
        "devices with allowMultipleAllocations",
        "compatibility groups of devices",
        "derived attributes",
        "list attributes",
    }


def test_list_attributes_count_where_they_are_used() -> None:
    listed = SLICE + "  devices:\n  - {name: a, attributes: {cpus: {ints: [1, 2]}}}\n---\n"
    assert named(listed + CLAIM) == []
    constrained = CLAIM + "    constraints:\n    - matchAttribute: d.example.com/cpus\n"
    assert named(listed + constrained) == ["m.yaml:21: spec.devices.constraints[0]: list attributes (constraint on d.example.com/cpus)"]
    selected = CLAIM + "        selectors: [{cel: {expression: \"2 in device.attributes['d.example.com'].cpus\"}}]\n"
    assert [f.split(": ")[-1] for f in named(listed + selected)] == ["list attributes (selector on cpus)"]


def test_the_good_manifests_need_nothing_more_and_allocate() -> None:
    loaded = load_checked([DATA / "good"])
    assert features_used(loaded.objects) == ()
    assert check_allocation(loaded) == ()
    (template,) = loaded.templates
    (result,) = Allocator(Inventory.of_loaded(loaded)).allocate([template.spec.spec], "node-a")
    assert [r.name for r in result.results] == ["gpu.example.com/node-a/gpu-1"]
    assert result.nodes == {"node-a"}


def test_a_selector_that_does_not_compile_is_an_input_error() -> None:
    loaded = load_checked([DATA / "good", DATA / "bad" / "bad-cel.yaml"])
    with pytest.raises(ManifestError) as error:
        check_allocation(loaded)
    assert str(error.value).replace(f"{DATA}/", "").splitlines() == [
        "bad/bad-cel.yaml:9: spec.selectors[0].cel.expression: CEL line 2, column 44: unexpected character '='",
        '  device.attributes["gpu.example.com"].model = "large"',
        "                                             ^",
    ]


def test_classes_without_devices_and_broken_pools_are_warnings() -> None:
    text = (DATA / "good" / "cluster.yaml").read_text()
    loaded = load_text(
        text.replace('driver == "gpu', 'driver == "tpu').replace("resourceSliceCount: 1", "resourceSliceCount: 2"), file="m.yaml"
    )
    assert [str(w) for w in check_allocation(loaded)] == [
        "m.yaml:10: metadata.name: no device matches DeviceClass gpu.example.com",
        "m.yaml:24: spec.pool: pool gpu.example.com/node-a is incomplete: it has 1 of 2 slices of generation 3: node node-a gets no device of it",
    ]
