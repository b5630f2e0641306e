"""Repair of O-LATE, P-LATE: a plugin that got its lock gives a call up if the client has gone.

Without it a prepare that is overtaken by the unprepare of the same claim prepares a claim that nobody will unprepare; and an unprepare
whose kubelet has died frees the device of a pod that the new kubelet has prepared the claim for. The kubelet calls again only after it has
given up or died, and its next call waits for the lock: so a client that is still there when the lock is taken has made no later call that
is already done. Assumes that the handler knows of the end of its client (the call's context is cancelled) before the client's next call.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.node import At, Method
from dra_spec.protocol.plugin import lock_prepare, lock_unprepare, take_lock
from dra_spec.protocol.plugin_state import Plugin, Plugins
from dra_spec.variants.base import Variant, VariantKind


def _take_lock_for_client(v: View, me: Plugin, pod: str, index: int, method: Method, at: At) -> Iterator[Outcome]:
    call = me.handling(v, pod, index, method, at)
    if call is None or v.value(me.lock) is not None:
        return
    if call.client:
        yield from take_lock(v, me, pod, index, call)
        return
    cancelled = v.outcome("cancelled")
    cancelled[me.call(pod, index)] = None
    yield cancelled


def _lock_prepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Prepare: takes the plugin's lock; if the client has gone (`cancelled`), the call ends and nothing has been done."""
    yield from _take_lock_for_client(v, plugins[node, driver], pod, index, Method.PREPARE, At.LOCK)


def _lock_unprepare(v: View, plugins: Plugins, node: str, driver: str, pod: str, index: int) -> Iterator[Outcome]:
    """Unprepare: takes the plugin's lock; if the client has gone (`cancelled`), the call ends and nothing has been done."""
    yield from _take_lock_for_client(v, plugins[node, driver], pod, index, Method.UNPREPARE, At.SENT)


VARIANT = Variant(
    name="plugin-looks-at-client",
    bug="O-LATE",
    kind=VariantKind.REPAIR,
    summary="A plugin that got its lock gives a call up if the client has gone",
    source="kubernetes-sigs/dra-driver-nvidia-gpu#1162",
    found_by=("no-orphan-prepared", "checkpoint-covers-prepared", "no-unprepare-while-shared"),
    replaces={lock_prepare.name: _lock_prepare, lock_unprepare.name: _lock_unprepare},
)
