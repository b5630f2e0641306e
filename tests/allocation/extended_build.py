"""Manifests with extended resources, as text."""

from __future__ import annotations

from dra_spec.resources import Loaded, load_text

GPU = "example.com/gpu"
NIC = "example.com/nic"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
Containers = list[tuple[str, str, dict[str, int]]]  # kind, name, resources


def load(*parts: str) -> Loaded:
    return load_text("\n---\n".join(parts), file="cluster.yaml")


def device_class(name: str = "gpu", resource: str = GPU, driver: str = "gpu.example.com", created: str = "") -> str:
    time = f', creationTimestamp: "{created}"' if created else ""
    spec = f"extendedResourceName: {resource}, " if resource else ""
    selectors = f"[{{cel: {{expression: \"device.driver == '{driver}'\"}}}}]"
    return f"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {name}{time}}}\nspec: {{{spec}selectors: {selectors}}}"


def node(name: str, plugin: dict[str, int] | None = None, labels: str = "") -> str:
    amounts = ", ".join(f'{r}: "{n}"' for r, n in (plugin or {}).items())
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nstatus: {{allocatable: {{{amounts}}}}}"


def slice_of(at: str, devices: int, driver: str = "gpu.example.com", extra: str = "") -> str:
    listed = ", ".join(f"{{name: d{i}{extra}}}" for i in range(devices))
    return (
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: {at}-{driver}}}\nspec:\n  driver: {driver}\n"
        f"  pool: {{name: {at}, generation: 1, resourceSliceCount: 1}}\n  nodeName: {at}\n  devices: [{listed}]"
    )


def containers(*listed: tuple[str, str, dict[str, int]]) -> str:
    init, main = [], []
    for kind, name, resources in listed:
        amounts = ", ".join(f"{r}: {n}" for r, n in resources.items())
        policy = ", restartPolicy: Always" if kind == "sidecar" else ""
        text = f"{{name: {name}, image: busybox{policy}, resources: {{limits: {{{amounts}}}}}}}"
        (main if kind == "container" else init).append(text)
    return f"  initContainers: [{', '.join(init)}]\n  containers: [{', '.join(main)}]"


def pod(name: str, *listed: tuple[str, str, dict[str, int]] | dict[str, int], spec: str = "", status: str = "", meta: str = "") -> str:
    """`listed`: containers (kind, name, resources); a mapping alone is one container `main`."""
    full = [("container", "main", each) if isinstance(each, dict) else each for each in listed]
    more = f"  {spec}\n" if spec else ""
    end = f"\nstatus: {{{status}}}" if status else ""
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{meta}}}\nspec:\n{more}{containers(*full)}{end}"
