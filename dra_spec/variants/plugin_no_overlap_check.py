"""A plugin prepares a device that another claim has already prepared (P-NOOVER, B64)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.plugin import lookup
from dra_spec.protocol.plugin_state import Plugins
from dra_spec.variants.base import Variant, VariantKind


def record_started(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: looks the claim up and records Started; the records of other claims are not looked at."""
    yield from lookup(v, plugins[node, driver], pod, index, overlap=False)


VARIANT = Variant(
    name="plugin-no-overlap-check",
    bug="B64",
    kind=VariantKind.DEFECT,
    summary="A plugin prepares a device that another claim has already prepared",
    replaces={"plugin.record_started": record_started},
    source="kubernetes/kubernetes#141471, kubernetes-sigs/dra-example-driver#263",
    found_by=("prepared-device-exclusive",),
)
