"""A plugin prepares whatever the claim says, though the device is gone (B48).

A device may be withdrawn between the scheduler's look at its ResourceSlice and the prepare call; the driver is the last who can notice.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.plugin import lookup, set_up_devices
from dra_spec.protocol.plugin_state import Plugins
from dra_spec.variants.base import Variant, VariantKind


def record_started(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: looks the claim up and records Started; whether the devices are there is not looked at."""
    yield from lookup(v, plugins[node, driver], pod, index, inventory=False)


def set_up(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: counts the claim as set up, with devices that may be gone."""
    yield from set_up_devices(v, plugins[node, driver], pod, index, inventory=False)


VARIANT = Variant(
    name="plugin-ignores-inventory",
    bug="B48",
    kind=VariantKind.DEFECT,
    summary="A plugin prepares a device that its driver has withdrawn",
    replaces={"plugin.record_started": record_started, "plugin.set_up": set_up},
    source="kubernetes/enhancements KEP-4381, NodePrepareResources: the driver must verify that allocated devices are available",
    found_by=("prepare-only-existing-device",),
)
