"""Random small models of the protocol: the shipped manifests with other writers, faults, bounds and variants than shipped models have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from dra_spec.content import directory
from dra_spec.resources.problems import ManifestError
from dra_spec.scenario import names
from dra_spec.scenario.build import build
from dra_spec.scenario.modelfile import SCHEMA, Overrides, read
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError
from dra_spec.variants.base import variants

NODES = ("one-node-one-device", "one-node-two-devices", "two-nodes-one-device-each", "two-nodes-uneven", "one-node-binding-conditions")
PODS = ("one-pod", "two-pods", "opposite-order", "one-pod-template", "one-bound-pod", "two-and-one", "small-and-large")
WRITERS: Sequence[Sequence[str]] = (
    ("scheduler",),
    ("scheduler", "workload"),
    ("kubelet", "plugin", "workload"),
    ("apiserver", "scheduler", "claim-controller", "workload"),
    ("scheduler", "claim-controller", "driver-controller", "workload"),
    ("kubelet", "plugin"),
    ("apiserver", "claim-controller", "kubelet", "plugin", "workload"),
    names.WRITERS,
)
EVENTS = tuple(names.FAULTS), tuple(names.ENVIRONMENT)


def text(seed: int) -> str:
    """A model file."""
    dice = random.Random(seed)
    node = dice.choice(NODES)
    writers = dice.choice(WRITERS)
    lines = [f"schema: {SCHEMA}", f"name: random-{seed}", f"manifests: [manifests/{node}.yaml, manifests/{dice.choice(PODS)}.yaml]"]
    lines += [f"writers: [{', '.join(writers)}]", f"bounds: {{lag: {dice.choice([1, 1, 2, 3])}, pods: {dice.choice([1, 2, 2])}}}"]
    for field, events, most in zip(("faults", "environment"), EVENTS, (1, 2), strict=True):
        chosen = dice.sample(events, dice.randint(0, most))
        if chosen:
            lines.append(f"{field}: {{{', '.join(f'{name}: {dice.choice([1, 1, 2, -1])}' for name in chosen)}}}")
    if node == "one-node-binding-conditions":
        lines.append("features: {DRADeviceBindingConditions: true}")
    if dice.random() < 0.3:
        lines.append("node-choice: any")
    if dice.random() < 0.3:
        lines.append("repaired: true")
    elif dice.random() < 0.4:
        lines.append(f"variants: [{dice.choice(sorted(variants()))}]")
    return "\n".join(lines) + "\n"


def scenario(seed: int) -> Scenario | None:
    """The scenario of a seed; None if what was thrown together does not fit, such as a variant of a writer that does not take part."""
    try:
        found = build(read(text(seed), Path(str(directory("models"))) / f"random-{seed}.yaml"), Overrides())
    except (InputError, ManifestError):
        return None
    return None if found.not_encoded else found
