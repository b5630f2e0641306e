"""The node plugin: crash between any two steps, exclusivity, reboot, devices that vanish."""

from __future__ import annotations

from typing import Any

from node_models import check, instance, model

from dra_spec.explorer import explore
from dra_spec.explorer.model import StateInvariant, StepInvariant, Truth, View
from dra_spec.protocol.node import nodes
from dra_spec.protocol.plugin_state import plugins
from dra_spec.variants.base import variant

ONE: dict[str, Any] = {"pods": {"p1": ["c1"]}, "drivers": {"c1": ["gpu"]}}
ONE_DEVICE_TWO_PODS: dict[str, Any] = {"pods": {"p1": ["t:a"], "p2": ["t:b"]}, "drivers": {"t:a": ["gpu"], "t:b": ["gpu"]}}
WAITS = variant("kubelet-loop-waits")


def verdict_of(inst: Any, fn: Any, *variants: Any) -> str:
    checked = model(inst, variants, only=["none"])
    checked.properties.append(StateInvariant("asked", fn))
    return explore(checked).properties[0].verdict


def test_a_plugin_may_crash_between_any_two_steps() -> None:
    result, verdicts = check(instance(**ONE, delete_pod=1, plugin_crash=2))
    assert set(verdicts.values()) == {"holds"}
    assert {a.name for a in result.actions if a.name.startswith("plugin.") and a.never_enabled} == set()


def test_hardware_is_never_set_up_without_a_record() -> None:
    inst = instance(**ONE, delete_pod=1, plugin_crash=2, kubelet_crash=1, node_reboot=1)
    every = plugins(inst).values()

    def recorded(v: View) -> Truth:
        return Truth(2 * all(v.value(p.hardware[c]) is None or v.value(p.records[c]) is not None for p in every for c in p.records))

    assert verdict_of(inst, recorded) == "holds"


def test_a_completed_record_has_its_cdi_file() -> None:
    """A reboot loses the file, but then the plugin does not serve before it has emptied its record."""
    inst = instance(**ONE, delete_pod=1, plugin_crash=1, node_reboot=1)
    plugin = plugins(inst)["n1", "gpu"]

    def has_file(v: View) -> Truth:
        record, file = v.value(plugin.records["c1"]), v.value(plugin.cdi("c1"))
        if record is None or not record.completed or not v.value(plugin.serving):
            return Truth.TRIVIAL
        unpreparing = any((call := v.value(s)) is not None and call.method.value == "unprepare" for s in plugin.node.calls["gpu", "p1"])
        return Truth(2 * (unpreparing or v.value(plugin.hardware["c1"]) is None or (file is not None and file.uid == record.uid)))

    assert verdict_of(inst, has_file) == "holds"
    assert verdict_of(inst, lambda v: Truth(2 * (v.value(plugin.records["c1"]) is None))) == "violated"


def test_the_overlap_check_keeps_a_device_exclusive_after_a_forced_deletion() -> None:
    inst = instance(**ONE_DEVICE_TWO_PODS, force_delete_pod=1, finish_pod=-1)
    assert set(check(inst, [WAITS])[1].values()) == {"holds"}
    defect = variant("plugin-no-overlap-check")
    assert check(inst, [WAITS, defect], only=defect.found_by)[1] == {"prepared-device-exclusive": "violated"}


def test_a_record_that_survives_a_reboot_keeps_the_pod_from_running() -> None:
    inst, only = instance(**ONE, delete_pod=1, node_reboot=1), ["pod-eventually-runs"]
    assert check(inst, only=only)[1] == {"pod-eventually-runs": "holds"}
    assert check(inst, [variant("plugin-keeps-record-at-reboot")], only)[1] == {"pod-eventually-runs": "violated"}


def test_a_vanished_device_is_not_prepared() -> None:
    inst = instance(**ONE, delete_pod=1, device_vanishes=1)
    _, verdicts = check(inst)
    assert verdicts["pod-eventually-runs"] == "violated"
    assert verdicts["no-orphan-prepared"] == "holds"
    checked = model(inst, only=["none"])
    gone = next(s for s in checked.slots if s.name.startswith("device/"))
    checked.properties.append(
        StepInvariant(
            "asked", lambda a: a.name == "plugin.set_up", lambda before, after, a, label: Truth(2 * (before.value(gone) or label != "ok"))
        )
    )
    assert explore(checked).properties[0].verdict == "holds"


def test_more_open_calls_than_lanes_are_beyond_the_bounds() -> None:
    """Each way to lose a client is counted in the lanes, so that a model of one pod never leaves its bounds."""
    inst = instance(**ONE, delete_pod=1, kubelet_crash=2, rpc_timeout=2)
    assert len(nodes(inst)["n1"].calls["gpu", "p1"]) == 4
    result, _ = check(inst, only=["none"])
    assert result.states > 1_000
