"""A plugin's record survives a reboot, and a completed record is answered without writing the CDI file again (B65)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.plugin import serve
from dra_spec.protocol.plugin_state import Plugins
from dra_spec.variants.base import Variant, VariantKind


def start(v: View, plugins: Plugins, node: str, driver: str) -> Iterator[Outcome]:
    """The plugin starts and serves from the record that it finds, whether the node was rebooted or not."""
    me = plugins[node, driver]
    if v.value(me.serving):
        return
    ok = v.outcome()
    serve(me, ok)
    yield ok


VARIANT = Variant(
    name="plugin-keeps-record-at-reboot",
    bug="B65",
    kind=VariantKind.DEFECT,
    summary="A plugin's record survives a reboot, and a completed claim is answered without its CDI file",
    replaces={"plugin.start": start},
    source="kubernetes/kubernetes#141433, ROCm/k8s-gpu-dra-driver#75",
    found_by=("cdi-matches-allocation", "pod-eventually-runs"),
)
