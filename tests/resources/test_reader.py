"""Objects out of manifests: what is accepted, and the exact message for what is not."""

# ruff: noqa: E501 - messages and table rows stand on one line

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_spec.resources import ManifestError, Pod, Quantity, load, load_text

Messages = Callable[[str], list[str]]

SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: s
spec:
  driver: gpu.example.com
  nodeName: node-a
  pool:
    name: node-a
    generation: 1
    resourceSliceCount: 1
  devices:
  - name: gpu-0
    attributes:
      index:
        int: 0
    capacity:
      memory:
        value: 8Gi
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - name: c
    image: busybox
    resources:
      claims:
      - name: gpu
  resourceClaims:
  - name: gpu
    resourceClaimName: one
"""


def test_a_claim_is_read_with_places(claim: str) -> None:
    (read,) = load_text(claim, file="m.yaml").claims
    request = read.spec.requests[0]
    assert (read.namespace, read.name, read.label) == ("default", "one", "ResourceClaim default/one")
    assert request.exactly is not None
    assert (request.exactly.device_class_name, request.exactly.number, request.exactly.all_devices) == ("gpu.example.com", 1, False)
    assert str(request.at) == "m.yaml:8: spec.devices.requests[0]"
    assert read.where("spec.devices.requests[0].exactly.deviceClassName").line == 10
    assert read.where("spec.devices.requests[0].exactly.count").line == 10  # not written: the nearest thing around it


def test_a_slice_is_read_exactly() -> None:
    (read,) = load_text(SLICE).slices
    (device,) = read.spec.devices
    assert read.pool_id == ("gpu.example.com", "node-a")
    assert (device.attributes["index"].kind, device.attributes["index"].value) == ("int", 0)
    assert device.capacity["memory"].value == Quantity.of(8 * 2**30)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("devices:", "devcies:", "m.yaml:6: spec.devcies: unknown field 'devcies', did you mean 'devices'?"),
        ("    requests:", "    request:", "m.yaml:7: spec.devices.request: unknown field 'request', did you mean 'requests'?"),
        ("exactly:", "zzz:", "m.yaml:9: spec.devices.requests[0].zzz: unknown field 'zzz'"),
        (
            "deviceClassName:",
            "deviceclassname:",
            "m.yaml:10: spec.devices.requests[0].exactly.deviceclassname: unknown field 'deviceclassname', did you mean 'deviceClassName'?",
        ),
        ("name: one", "nmae: one", "m.yaml:4: metadata.nmae: unknown field 'nmae', did you mean 'name'?"),
        ("apiVersion:", "apiversion:", "m.yaml:1: apiversion: unknown field 'apiversion', did you mean 'apiVersion'?"),
        ("kind: ResourceClaim\n", "", "m.yaml:1: kind: 'kind' is missing"),
        ("apiVersion: resource.k8s.io/v1\n", "", "m.yaml:1: apiVersion: 'apiVersion' is missing in ResourceClaim one"),
        (
            "kind: ResourceClaim",
            "kind: ResourceClaims",
            "m.yaml:2: kind: unknown kind 'ResourceClaims' in resource.k8s.io, did you mean 'ResourceClaim'?",
        ),
        ("/v1\n", "/v2\n", "m.yaml:1: apiVersion: unknown version 'v2' of resource.k8s.io, expected one of v1, v1beta2, v1beta1, v1alpha3"),
        (
            "        deviceClassName: gpu.example.com\n",
            "        count: 2\n",
            "m.yaml:10: spec.devices.requests[0].exactly.deviceClassName: the required field 'deviceClassName' is missing",
        ),
        (
            "name: gpu\n",
            "name: GPU\n",
            "m.yaml:8: spec.devices.requests[0].name: found 'GPU', expected a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
        ),
        (
            "name: gpu\n",
            "name: yes\n",
            "m.yaml:8: spec.devices.requests[0].name: found the boolean yes, expected a string (YAML reads 'yes' as a boolean: put it in quotes)",
        ),
        ("name: gpu\n", "name: 3\n", "m.yaml:8: spec.devices.requests[0].name: found the number 3, expected a string"),
        (
            "name: one",
            "name: x-{{.Index}}",
            "m.yaml:4: metadata.name: found 'x-{{.Index}}', expected a DNS subdomain: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part; it looks like a template that was not rendered",
        ),
    ],
)
def test_wrong_claims(messages: Messages, claim: str, old: str, new: str, message: str) -> None:
    assert old in claim
    assert messages(claim.replace(old, new, 1)) == [message]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("        count: two\n", "m.yaml:11: spec.devices.requests[0].exactly.count: found the string 'two', expected an integer"),
        ("        count: 1.5\n", "m.yaml:11: spec.devices.requests[0].exactly.count: found the number 1.5, expected an integer"),
        ("        count: -1\n", "m.yaml:11: spec.devices.requests[0].exactly.count: found count -1, expected at least 1"),
        (
            "        count: 99999999999999999999\n",
            "m.yaml:11: spec.devices.requests[0].exactly.count: found 99999999999999999999, expected a 64-bit integer",
        ),
        (
            "        allocationMode: all\n",
            "m.yaml:11: spec.devices.requests[0].exactly.allocationMode: found 'all', expected one of 'ExactCount', 'All'",
        ),
        (
            "        allocationMode: All\n        count: 2\n",
            "m.yaml:12: spec.devices.requests[0].exactly.count: found count 2 with allocationMode All, expected no count",
        ),
        (
            "        adminAccess: 'true'\n",
            "m.yaml:11: spec.devices.requests[0].exactly.adminAccess: found the string 'true', expected true or false",
        ),
        (
            "        selectors: []\n        selectorz: []\n",
            "m.yaml:12: spec.devices.requests[0].exactly.selectorz: unknown field 'selectorz', did you mean 'selectors'?",
        ),
        ("        selectors: {}\n", "m.yaml:11: spec.devices.requests[0].exactly.selectors: found a mapping, expected a list"),
        (
            "        selectors:\n        - device.driver\n",
            "m.yaml:12: spec.devices.requests[0].exactly.selectors[0]: found the string 'device.driver', expected a mapping",
        ),
        (
            "        selectors:\n        - cel: {}\n",
            "m.yaml:12: spec.devices.requests[0].exactly.selectors[0].cel.expression: the required field 'expression' is missing",
        ),
        (
            "        capacity:\n          requests:\n            memory: 10GB\n",
            "m.yaml:13: spec.devices.requests[0].exactly.capacity.requests[memory]: '10GB' is not a quantity: expected a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei",
        ),
        (
            "        tolerations:\n        - operator: Exists\n          value: x\n",
            "m.yaml:12: spec.devices.requests[0].exactly.tolerations[0]: operator Exists takes no value",
        ),
        (
            "      firstAvailable:\n      - name: a\n        deviceClassName: b\n",
            "m.yaml:8: spec.devices.requests[0]: found both of exactly and firstAvailable, expected exactly one",
        ),
        (
            "    - name: gpu\n      exactly:\n        deviceClassName: b\n",
            "m.yaml:11: spec.devices.requests[1]: 'gpu' occurs twice in this list (first on line 8)",
        ),
        ("    - name: more\n", "m.yaml:11: spec.devices.requests[1]: found neither of exactly and firstAvailable, expected exactly one"),
        (
            "    - name: more\n      deviceClassName: b\n",
            "m.yaml:12: spec.devices.requests[1].deviceClassName: the field 'deviceClassName' stands under 'exactly' in v1 (the flat form belongs to v1beta1)",
        ),
        (
            "    constraints:\n    - requests: [gpu]\n",
            "m.yaml:12: spec.devices.constraints[0]: found neither of matchAttribute and distinctAttribute, expected exactly one",
        ),
        (
            "    constraints:\n    - matchAttribute: root\n",
            "m.yaml:12: spec.devices.constraints[0].matchAttribute: found 'root', expected a fully qualified name such as 'example.com/name'",
        ),
        (
            "    constraints:\n    - requests: [gpus]\n      matchAttribute: a.com/root\n",
            "m.yaml:12: spec.devices.constraints[0].requests[0]: a constraint names request 'gpus', expected one of gpu",
        ),
        (
            "    config:\n    - opaque:\n        driver: gpu.example.com\n        parameters: 3\n",
            "m.yaml:14: spec.devices.config[0].opaque.parameters: found the number 3, expected a mapping (the driver's own configuration object)",
        ),
        ("  controller: old\n", "m.yaml:11: spec.controller: unknown field 'controller'"),
    ],
)
def test_wrong_additions_to_a_claim(messages: Messages, claim: str, more: str, message: str) -> None:
    assert messages(claim + more) == [message]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "  nodeName: node-a\n",
            "",
            "m.yaml:6: spec: found no node selection, expected exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection",
        ),
        (
            "  nodeName: node-a\n",
            "  nodeName: node-a\n  allNodes: true\n",
            "m.yaml:6: spec: found nodeName and allNodes, expected exactly one of nodeName, nodeSelector, allNodes, perDeviceNodeSelection",
        ),
        ("    resourceSliceCount: 1\n", "", "m.yaml:9: spec.pool.resourceSliceCount: the required field 'resourceSliceCount' is missing"),
        ("resourceSliceCount: 1", "resourceSliceCount: 0", "m.yaml:11: spec.pool.resourceSliceCount: found 0, expected at least 1"),
        ("int: 0", "int: '0'", "m.yaml:16: spec.devices[0].attributes[index].int: found the string '0', expected an integer"),
        (
            "int: 0",
            "float: 0",
            "m.yaml:16: spec.devices[0].attributes[index]: found 'float', expected exactly one of int, ints, bool, bools, string, strings, version, versions",
        ),
        (
            "int: 0",
            "version: '1.0'",
            "m.yaml:16: spec.devices[0].attributes[index].version: '1.0' is not a semantic version: expected MAJOR.MINOR.PATCH, for example '1.2.0'",
        ),
        (
            "index:",
            "in-dex:",
            "m.yaml:15: spec.devices[0].attributes[in-dex]: found 'in-dex', expected an identifier of at most 32 letters, digits and '_', perhaps with a domain before it as in 'example.com/name'",
        ),
        ("value: 8Gi", "valeu: 8Gi", "m.yaml:19: spec.devices[0].capacity[memory].valeu: unknown field 'valeu', did you mean 'value'?"),
        (
            "  - name: gpu-0\n",
            "  - name: gpu-0\n    bindingConditions: [ready]\n",
            "m.yaml:13: spec.devices[0].bindingFailureConditions: bindingConditions and bindingFailureConditions must be set together",
        ),
        (
            "  - name: gpu-0\n",
            "  - name: gpu-0\n    allNodes: true\n",
            "m.yaml:13: spec.devices[0]: device 'gpu-0' selects nodes itself, which needs perDeviceNodeSelection: true",
        ),
        (
            "  - name: gpu-0\n",
            "  - name: gpu-0\n    basic: {}\n",
            "m.yaml:14: spec.devices[0].basic: the field 'basic' belongs to v1beta1: in v1 what it holds () stands in the device itself",
        ),
        (
            "value: 8Gi",
            "value: 8Gi\n        requestPolicy: {default: 1Gi}",
            "m.yaml:20: spec.devices[0].capacity[memory].requestPolicy: requestPolicy is only for devices with allowMultipleAllocations",
        ),
        (
            "value: 8Gi",
            "value: 8Gi\n        requestPolicy: {default: 1Gi, validValues: [1Gi], validRange: {min: 1Gi}}",
            "m.yaml:20: spec.devices[0].capacity[memory].requestPolicy: found both of validValues and validRange, expected at most one",
        ),
        (
            "value: 8Gi",
            "value: 8Gi\n        requestPolicy: {validValues: [1Gi]}",
            "m.yaml:20: spec.devices[0].capacity[memory].requestPolicy.default: a policy with validValues or validRange needs a default",
        ),
        (
            "  - name: gpu-0\n",
            "  - name: gpu-0\n    bindingConditions: [ready, up]\n    bindingFailureConditions: [lost, ready]\n",
            "m.yaml:15: spec.devices[0].bindingFailureConditions[1]: bindingConditions and bindingFailureConditions must be disjoint",
        ),
        ("  name: s\n", "  name: s\n  namespace: x\n", "m.yaml:5: metadata.namespace: a ResourceSlice has no namespace"),
        (
            "  devices:",
            "  sharedCounters:\n  - name: c\n    counters: {a: {value: 1}}\n  devices:",
            "m.yaml:6: spec: found devices and sharedCounters in one slice, expected one of them (they go into different slices of the pool)",
        ),
    ],
)
def test_wrong_slices(messages: Messages, old: str, new: str, message: str) -> None:
    assert old in SLICE
    assert messages(SLICE.replace(old, new, 1)) == [message]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "resourceClaims:",
            "resourceclaims:",
            ["m.yaml:12: spec.resourceclaims: unknown field 'resourceclaims', did you mean 'resourceClaims'?"],
        ),
        (
            "resourceClaims:",
            "resourceClaim:",
            ["m.yaml:12: spec.resourceClaim: unknown field 'resourceClaim', did you mean 'resourceClaims'?"],
        ),
        (
            "resourceClaimName:",
            "resourceclaimname:",
            ["m.yaml:14: spec.resourceClaims[0].resourceclaimname: unknown field 'resourceclaimname', did you mean 'resourceClaimName'?"],
        ),
        (
            "    resourceClaimName: one\n",
            "",
            ["m.yaml:13: spec.resourceClaims[0]: found neither of resourceClaimName and resourceClaimTemplateName, expected exactly one"],
        ),
        (
            "      - name: gpu\n",
            "      - name: gpus\n",
            ["m.yaml:6: spec: container 'c' (line 11) uses claim 'gpus', but spec.resourceClaims lists gpu"],
        ),
        (
            "  resourceClaims:\n  - name: gpu\n",
            "  restartpolicy: Never\n  resourceClaims:\n  - name: gpu\n",
            ["m.yaml:12: spec.restartpolicy: unknown field 'restartpolicy', did you mean 'restartPolicy'?"],
        ),
        ("  name: p\n", "  labels: {}\n", ["m.yaml:4: metadata.name: the required field 'name' is missing"]),
    ],
)
def test_wrong_pods(messages: Messages, old: str, new: str, expected: list[str]) -> None:
    assert old in POD
    assert messages(POD.replace(old, new, 1)) == expected


def test_fields_of_a_pod_that_dra_does_not_read_are_ignored() -> None:
    text = POD + "  hostNetwork: true\n  somethingNew: {a: [1]}\n  tolerations:\n  - {key: x, operator: Exists}\n"
    (pod,) = load_text(text).pods
    assert pod.spec.resource_claims[0].resource_claim_name == "one"


def test_all_problems_of_all_documents_come_at_once(messages: Messages, claim: str) -> None:
    text = claim.replace("devices:", "devcies:") + "---\n" + POD.replace("resourceClaims:", "resourceclaims:")
    assert [m.split(": ")[0] for m in messages(text)] == ["m.yaml:6", "m.yaml:23"]


def test_lower_case_keys_of_a_whole_object_are_named_together(messages: Messages) -> None:
    text = POD.replace("apiVersion", "apiversion").replace("resourceClaims", "resourceclaims")
    assert messages(text) == [
        "m.yaml:1: apiversion: unknown field 'apiversion', did you mean 'apiVersion'?",
        "m.yaml:12: spec.resourceclaims: unknown field 'resourceclaims', did you mean 'resourceClaims'?",
    ]


def test_classic_dra_is_said_to_be_gone(messages: Messages) -> None:
    text = "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: a}\nspec:\n  resourceClassName: b\n"
    assert messages(text) == [
        "m.yaml:1: apiVersion: resource.k8s.io/v1alpha2 ResourceClaim is classic DRA, an API that no longer exists in Kubernetes: "
        "write the claim for resource.k8s.io/v1 (device classes and CEL selectors)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.yaml: the file is empty: it holds no Kubernetes object"),
        ("# nothing here\n---\n", "m.yaml: the file is empty: it holds no Kubernetes object"),
        ("just words\n", "m.yaml:1: found the string 'just words', expected a Kubernetes object (a mapping with apiVersion and kind)"),
        ("- a\n", "m.yaml:1: found a list, expected a Kubernetes object (a mapping with apiVersion and kind)"),
        ("%%% \x7f: [", "m.yaml: not YAML: unacceptable character #x007f: special characters are not allowed"),
        ("apiVersion: v1\nkind: [Pod]\n", "m.yaml:2: kind: found a list, expected a string"),
        ("apiVersion: v1\nkind: List\nitems: 3\n", "m.yaml:3: items: found the number 3, expected a list"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", "m.yaml:1: spec: the required field 'spec' is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: 3\nspec: {}\n", "m.yaml:3: metadata: found the number 3, expected a mapping"),
    ],
)
def test_texts_without_objects(messages: Messages, text: str, message: str) -> None:
    assert messages(text)[0] == message


def test_lists_of_both_sorts(claim: str) -> None:
    item = load_text(claim).claims[0]
    body = {
        "metadata": {"name": "one"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }
    header = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    plain_list = {"apiVersion": "v1", "kind": "List", "items": [header | body]}
    typed_list = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimList", "items": [body], "metadata": {}}
    for content in (plain_list, typed_list):
        assert load_text(json.dumps(content)).claims == (item,)


def test_an_object_twice(messages: Messages, claim: str) -> None:
    assert messages(claim + "---\n" + claim) == ["m.yaml:15: metadata.name: ResourceClaim default/one occurs twice, first at m.yaml:1"]
    other = claim.replace("name: one", "name: one\n  namespace: other")
    assert len(load_text(claim + "---\n" + other).claims) == 2


def test_foreign_kinds_are_ignored_with_a_note(claim: str) -> None:
    loaded = load_text("apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec: {}\n---\n" + claim, file="m.yaml")
    assert [str(w) for w in loaded.warnings] == ["m.yaml:1: Service web (v1) is ignored: not a kind that DRA reads"]
    assert len(loaded.objects) == 1


def test_generate_name_gets_a_number() -> None:
    text = POD.replace("name: p\n", "generateName: p-\n", 1)
    assert [p.name for p in load_text(text + "---\n" + text).pods] == ["p-0", "p-1"]


def test_the_text_and_the_lines_of_a_block_expression(claim: str) -> None:
    more = "        selectors:\n        - cel:\n            expression: |\n              device.driver == 'a' &&\n              true\n"
    (read,) = load_text(claim + more, file="m.yaml").claims
    assert read.spec.requests[0].exactly is not None
    (selector,) = read.spec.requests[0].exactly.selectors
    assert selector.expression == "device.driver == 'a' &&\ntrue\n"
    assert (selector.at.line, selector.at.text_line) == (13, 14)


def test_directories_are_read_recursively(tmp_path: Path, claim: str) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "claim.yml").write_text(claim)
    (tmp_path / "pod.yaml").write_text(POD)
    (tmp_path / "note.txt").write_text("not a manifest")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "broken.yaml").write_text("a: b: c")
    loaded = load([tmp_path])
    assert [o.label for o in loaded.objects] == ["ResourceClaim default/one", "Pod default/p"]


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ManifestError) as error:
        load([tmp_path / "empty", tmp_path / "none.yaml", tmp_path / "latin.yaml"])
    assert [str(p).replace(str(tmp_path), "T") for p in error.value.problems] == [
        "T/empty: the directory holds no manifests (*.yaml, *.yml, *.json)",
        "T/none.yaml: no such file or directory",
        "T/latin.yaml:2: not YAML: the text is not UTF-8",
    ]


def test_many_problems_are_cut_in_print_and_not_in_data(claim: str) -> None:
    text = "---\n".join(claim.replace("devices:", "devcies:").replace("one", f"c{i}") for i in range(25))
    with pytest.raises(ManifestError) as error:
        load_text(text)
    assert len(error.value.problems) == 25
    assert str(error.value).splitlines()[-1] == "... and 5 more"
    assert {p.code for p in error.value.problems} == {"DRA110"}
    assert (error.value.problems[0].found, error.value.problems[0].where.column) == ("devcies", 3)


def test_a_pod_keeps_what_scheduling_needs() -> None:
    (pod,) = load_text(POD + "  schedulingGates:\n  - name: wait\n  nodeSelector: {zone: a}\n").of(Pod)
    assert [g.name for g in pod.spec.scheduling_gates] == ["wait"]
    assert pod.spec.node_selector == {"zone": "a"}


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ("operator: In", "In needs at least one value"),
        ("operator: Exists, values: [a]", "Exists takes no values, found a"),
        ("operator: Gt, values: [x]", "Gt takes one integer, found x"),
        ("operator: Near", "found 'Near', expected one of 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'"),
    ],
)
def test_wrong_node_selectors(messages: Messages, requirement: str, message: str) -> None:
    selector = f"nodeSelector: {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, {requirement}}}]}}]}}"
    (found,) = messages(SLICE.replace("nodeName: node-a", selector))
    assert found.startswith("m.yaml:7: spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0]")
    assert found.endswith(": " + message)
