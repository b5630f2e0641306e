"""Real-shaped API objects (plain JSON dicts) made from a bounded instance's plain data, and small readers of them.

Devices are written `driver/pool/device` in an instance and as three fields in an object. A pod's UID is derived from its name as a
name is used once in a run; a claim's UID carries a running number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Object = dict[str, Any]

FINALIZER = "resource.kubernetes.io/delete-protection"
ENTRY_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
HOSTNAME = "kubernetes.io/hostname"
NAMESPACE = "default"
MAX_CONSUMERS = 256


def clone(obj: Object) -> Object:
    """A deep copy of a JSON object."""
    return {key: _clone(item) for key, item in obj.items()}


def _clone(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clone(item) for key, item in value.items()}
    return [_clone(item) for item in value] if isinstance(value, list) else value


def pod_object(name: str, entries: Iterable[tuple[str, str, str | None]], node: str | None = None) -> Object:
    """A Pod. `entries`: (entry name, claim name, template name or None)."""
    claims = [{"name": entry, "resourceClaimName": claim} if template is None else {"name": entry, "resourceClaimTemplateName": template}
              for entry, claim, template in entries]  # fmt: skip
    spec: Object = {"resourceClaims": claims}
    if node is not None:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def claim_object(name: str, requests: Sequence[str]) -> Object:
    """A ResourceClaim with the named requests and an empty status."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [{"name": request, "exactly": {"deviceClassName": "any"}} for request in requests]}},
        "status": {},
    }


def generated_claim(name: str, entry: str, requests: Sequence[str], owner: Object) -> Object:
    """The claim that the controller makes from a template for one entry of the pod `owner`."""
    claim = claim_object(name, requests)
    claim["metadata"]["annotations"] = {ENTRY_ANNOTATION: entry}
    claim["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name_of(owner), "uid": uid_of(owner), "controller": True}
    ]
    return claim


def allocation_object(allocation: Any) -> Object:
    """`status.allocation` of a duck-typed allocation: `.results` (request, device, admin, binding conditions) and `.nodes`."""
    results = []
    for result in allocation.results:
        driver, pool, device = split_device(result.device)
        entry: Object = {"request": result.request, "driver": driver, "pool": pool, "device": device}
        if result.admin:
            entry["adminAccess"] = True
        if result.binding_conditions:
            entry["bindingConditions"] = list(result.binding_conditions)
            entry["bindingFailureConditions"] = list(result.binding_failure_conditions)
        results.append(entry)
    found: Object = {"devices": {"results": results}}
    if allocation.nodes is not None:
        found["nodeSelector"] = node_selector(allocation.nodes)
    return found


def split_device(device: str) -> tuple[str, str, str]:
    """(driver, pool, device) of `driver/pool/device`; a pool name may itself contain slashes."""
    driver, _, rest = device.partition("/")
    pool, _, name = rest.rpartition("/")
    return driver, pool, name


def node_selector(nodes: Iterable[str]) -> Object:
    """A node selector that accepts exactly the named nodes: one by field, several by host name label."""
    names = sorted(nodes)
    if len(names) == 1:
        return {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}]}
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": names}]}]}


def selected_nodes(allocation: Object | None) -> list[str] | None:
    """The nodes that an allocation's selector accepts, None = everywhere."""
    if allocation is None or "nodeSelector" not in allocation:
        return None
    term = allocation["nodeSelector"]["nodeSelectorTerms"][0]
    (requirement,) = term.get("matchFields") or term["matchExpressions"]
    return list(requirement["values"])


def name_of(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def uid_of(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def rv_of(obj: Object) -> int:
    """resourceVersion as the integer that it is."""
    return int(obj["metadata"]["resourceVersion"])


def deleting(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def finalizer(claim: Object) -> bool:
    """Whether the built-in finalizer is set."""
    return FINALIZER in claim["metadata"].get("finalizers", ())


def allocation(claim: Object) -> Object | None:
    found: Object | None = claim["status"].get("allocation")
    return found


def results(found: Object | None) -> list[Object]:
    """The allocation's results; empty if None."""
    return list(found.get("devices", {}).get("results") or ()) if found is not None else []


def device_id(result: Mapping[str, Any]) -> str:
    """`driver/pool/device` of a result or of an entry of `status.devices`."""
    return f"{result['driver']}/{result['pool']}/{result['device']}"


def exclusive(found: Object | None) -> set[str]:
    """Devices that an allocation holds for itself: results without admin access."""
    return {device_id(r) for r in results(found) if not r.get("adminAccess")}


def consumers(claim: Object) -> list[Object]:
    """`status.reservedFor`."""
    return list(claim["status"].get("reservedFor") or ())


def reserved_for(claim: Object, pod_uid: str) -> bool:
    return any(entry["uid"] == pod_uid for entry in consumers(claim))


def consumer(pod: Object) -> Object:
    """The entry of `reservedFor` that names the pod."""
    return {"resource": "pods", "name": name_of(pod), "uid": uid_of(pod)}


def conditions(claim: Object) -> set[tuple[str, str]]:
    """(device, type) of each condition in `status.devices` whose status is True."""
    found = set()
    for entry in claim["status"].get("devices") or ():
        found |= {(device_id(entry), c["type"]) for c in (entry.get("conditions") or ()) if c["status"] == "True"}
    return found


def owner_pod(claim: Object) -> tuple[str, str] | None:
    """(name, uid) of the pod that controls a generated claim."""
    for ref in claim["metadata"].get("ownerReferences", ()):
        if ref.get("controller") and ref["kind"] == "Pod" and ref["apiVersion"] == "v1":
            return ref["name"], ref["uid"]
    return None


def controlled_by(claim: Object, uid: str) -> bool:
    """Whether the object with this UID controls the claim; its kind and name are not looked at. Source: meta/v1, IsControlledBy."""
    return any(ref.get("controller") and ref["uid"] == uid for ref in claim["metadata"].get("ownerReferences", ()))


def is_for(claim: Object, pod: Object) -> bool:
    """Whether a claim was generated for the pod. Source: resourceclaim, IsForPod."""
    return claim["metadata"].get("namespace") == pod["metadata"].get("namespace") and controlled_by(claim, uid_of(pod))


def node_name(pod: Object) -> str | None:
    found: str | None = pod["spec"].get("nodeName")
    return found


def phase(pod: Object) -> str:
    return str(pod["status"]["phase"])


def terminal(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def claim_name(pod: Object, entry: Object) -> str | None:
    """The claim that an entry of `spec.resourceClaims` stands for; None if the generated claim is not recorded yet."""
    if "resourceClaimName" in entry:
        return str(entry["resourceClaimName"])
    for status in pod["status"].get("resourceClaimStatuses", ()):
        if status["name"] == entry["name"]:
            return str(status["resourceClaimName"])
    return None


def known_claims(pod: Object) -> list[str]:
    """The names of the pod's claims that are known, in the order of the entries."""
    found = [claim_name(pod, entry) for entry in pod["spec"]["resourceClaims"]]
    return [name for name in found if name is not None]
