"""The names that a model file may use: writers, faults, environment events, features, bounds."""

from __future__ import annotations

WRITERS = ("apiserver", "scheduler", "claim-controller", "driver-controller", "kubelet", "plugin", "workload")

FAULTS = {
    "kubelet-crash": "the kubelet of a node dies and comes back: memory lost, checkpoint kept",
    "plugin-crash": "a driver's plugin dies and comes back: memory lost, its checkpoint and CDI files kept",
    "scheduler-crash": "a scheduler dies and comes back with nothing but what it lists",
    "rpc-failed": "a prepare or unprepare call fails",
    "rpc-lost": "a prepare or unprepare call is carried out, its answer is lost",
    "api-refused": "an API write is refused and has no effect",
    "api-applied-error": "an API write takes effect and is answered with an error all the same",
    "device-vanishes": "a device disappears from the inventory",
    "node-reboot": "a node reboots: processes, containers and volatile files gone, disk kept",
}

ENVIRONMENT = {
    "delete-pod": "somebody deletes a pod",
    "force-delete-pod": "somebody deletes a pod without waiting for its node",
    "delete-claim": "somebody deletes a claim",
    "touch-claim": "somebody edits a label of a claim",
    "finish-pod": "a pod's containers end by themselves",
}

FEATURES = {
    "DRADeviceBindingConditions": "a pod is bound only after the driver's controller has set the devices' conditions",
}

ALLOCATIONS = ("upstream", "any")

BOUNDS = {
    "lag": "most undelivered watch events per watcher and kind",
    "pods": "the first so many pods of the manifests take part",
    "replicas": "most pods that one workload object contributes",
    "schedulers": "how many schedulers run (1 or 2)",
    "allocations": "most allocations that one call of the allocator may have (allocation: any)",
}

DEFAULT_BOUNDS = {"lag": 2, "replicas": 2, "allocations": 64}

RELEASES = ("1.37",)
VERDICTS = ("holds", "violated", "undecided")
WITHOUT_LIMIT = -1  # a budget that is never used up
