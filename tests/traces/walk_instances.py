"""Small instances for walks: plain data, with a first-fit allocator of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dra_spec.allocation.errors import DoesNotFit
from dra_spec.explorer.model import Model
from dra_spec.explorer.semantics import Semantics
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import Allocate, ClaimRef, ClaimSpec, DeviceSpec, Instance, PodSpec
from dra_spec.protocol.objects import Allocation, DeviceResult
from dra_spec.variants.base import variant

GPU, NET = "gpu.example.com", "net.example.com"
CONTROL = "scheduler workload apiserver"
NODE = "kubelet plugin workload apiserver"


def device(name: str, node: str | None = "n1", driver: str = GPU, conditions: bool = False) -> DeviceSpec:
    awaited, failures = (("Attached",), ("AttachFailed",)) if conditions else ((), ())
    return DeviceSpec(f"{driver}/{node or 'net'}/{name}", node, awaited, failures)


def claim(name: str, pod: str | None = None, requests: Sequence[str] = ("r",)) -> ClaimSpec:
    return ClaimSpec(name, pod, tuple(requests))


def pod(
    name: str, *claims: str, template: bool = False, present: bool = True, node: str | None = None, scheduler: str | None = None
) -> PodSpec:
    refs = tuple(ClaimRef(f"e{i}", c, "t" if template else None) for i, c in enumerate(claims))
    return PodSpec(name, refs, present, node, scheduler)


def first_fit(claims: Sequence[ClaimSpec], devices: Sequence[DeviceSpec]) -> Allocate:
    """One device per request, in order. A request called `admin` gets any device; one that is part of a driver's name, that driver's."""
    specs = {c.name: c for c in claims}

    def allocate(names: tuple[str, ...], node: str, in_use: frozenset[str]) -> tuple[Allocation, ...]:
        used, found = set(in_use), []
        for name in names:
            results = []
            for request in specs[name].requests:
                admin = request == "admin"
                wanted = [d for d in devices if d.node in (None, node) and (admin or d.name not in used)]
                fitting = [d for d in wanted if request in ("r", "admin") or request in d.driver]
                if not fitting:
                    raise DoesNotFit
                chosen = fitting[0]
                results.append(DeviceResult(request, chosen.name, admin, chosen.binding_conditions, chosen.binding_failure_conditions))
                used |= set() if admin else {chosen.name}
            local = any(d.node for d in devices for r in results if r.device == d.name)
            found.append(Allocation(tuple(results), frozenset({node}) if local else None))
        return tuple(found)

    return allocate


def instance(
    pods: Sequence[PodSpec],
    claims: Sequence[ClaimSpec],
    devices: Sequence[DeviceSpec],
    writers: str,
    nodes: Sequence[str] = ("n1",),
    schedulers: Sequence[str] = ("scheduler",),
    lag: int = 4,
    any_node: bool = False,
    **budgets: int,
) -> Instance:
    """Budgets by name with underscores."""
    return Instance(
        pods,
        claims,
        nodes,
        devices,
        first_fit(claims, devices),
        frozenset(writers.split()),
        schedulers=schedulers,
        lag=lag,
        budgets={name.replace("_", "-"): n for name, n in budgets.items()},
        any_node=any_node,
    )


def semantics_of(instance: Instance, *variants: str) -> Semantics:
    made = assemble(instance, [variant(name) for name in variants])
    return Semantics(Model("small", made.slots, made.actions))


def one_pod() -> Instance:
    """One pod and all that users can do to it."""
    return instance(
        [pod("p1", "c1")],
        [claim("c1")],
        [device("d1")],
        CONTROL,
        api_refused=2,
        touch_claim=2,
        finish_pod=-1,
        delete_pod=1,
        delete_claim=1,
        scheduler_crash=1,
    )


def two_pods() -> Instance:
    """H1's instance, with errors: p1 uses two claims, p2 one, two devices."""
    return instance(
        [pod("p1", "c1", "c2"), pod("p2", "c3", present=False)],
        [claim("c1"), claim("c2"), claim("c3")],
        [device("d1"), device("d2")],
        CONTROL,
        api_refused=5,
        api_applied_error=5,
        touch_claim=2,
        finish_pod=-1,
        scheduler_crash=1,
        delete_claim=1,
    )


def shared() -> Instance:
    """Three pods share a claim; two nodes, any may be chosen."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1"), pod("p3", "c1", present=False)],
        [claim("c1")],
        [device("d1"), device("d2", "n2")],
        CONTROL,
        nodes=("n1", "n2"),
        any_node=True,
        api_refused=5,
        api_applied_error=5,
        touch_claim=2,
        finish_pod=-1,
        delete_claim=1,
    )


def racing() -> Instance:
    """Two pods for two devices, and nothing else that happens."""
    return instance([pod("p1", "c1"), pod("p2", "c2")], [claim("c1"), claim("c2")], [device("d1"), device("d2")], CONTROL)


def opposite() -> Instance:
    """Two claims that end up on different nodes, each wanted by a pod of its own and both by a third; PostFilter has work."""
    return instance(
        [pod("p1", "c1", "c2"), pod("p2", "c2"), pod("p3", "c1"), pod("p4")],
        [claim("c1"), claim("c2")],
        [device("d1"), device("d2", "n2")],
        CONTROL,
        nodes=("n1", "n2"),
        any_node=True,
        api_refused=8,
        api_applied_error=2,
    )


def two_schedulers() -> Instance:
    """Two schedulers, one device."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c2", scheduler="other")],
        [claim("c1"), claim("c2")],
        [device("d1")],
        CONTROL,
        schedulers=("scheduler", "other"),
        api_refused=2,
        api_applied_error=2,
    )


def generated() -> Instance:
    """Claims from templates, and a controller that restarts."""
    return instance(
        [pod("p1", "c1", "c2", template=True), pod("p2", "c3", template=True, present=False)],
        [claim("c1", "p1"), claim("c2", "p1"), claim("c3", "p2")],
        [device("d1"), device("d2")],
        CONTROL + " claim-controller",
        api_refused=3,
        api_applied_error=2,
        finish_pod=-1,
        delete_pod=1,
        delete_claim=2,
        claim_controller_crash=1,
    )


def controlled() -> Instance:
    """Named claims under the claim controller, and a pod that has its node from the start."""
    return instance(
        [pod("p1", "c1", "c2"), pod("p2", "c1", present=False), pod("p3", "c2", node="n1")],
        [claim("c1"), claim("c2")],
        [device("d1"), device("d2")],
        CONTROL + " claim-controller",
        api_refused=3,
        finish_pod=-1,
        delete_pod=2,
        delete_claim=1,
        force_delete_pod=1,
        claim_controller_crash=1,
    )


def binding() -> Instance:
    """Devices with binding conditions, one of which may vanish."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1", "c2")],
        [claim("c1"), claim("c2")],
        [device("d1", conditions=True), device("d2", "n2", conditions=True), device("d3", "n2")],
        CONTROL + " driver-controller claim-controller",
        nodes=("n1", "n2"),
        device_vanishes=1,
        api_refused=2,
        finish_pod=1,
    )


def one_node() -> Instance:
    """Kubelet and plugin, and all that can go wrong with them."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1", "c2", present=False)],
        [claim("c1"), claim("c2")],
        [device("d1"), device("d2")],
        NODE,
        kubelet_crash=1,
        plugin_crash=1,
        rpc_failed=1,
        rpc_lost=1,
        rpc_timeout=1,
        finish_pod=-1,
        delete_pod=1,
        force_delete_pod=1,
        node_reboot=1,
        device_vanishes=1,
        api_refused=1,
    )


def joined() -> Instance:
    """A pod that comes to a claim while another one leaves it."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1", present=False)], [claim("c1")], [device("d1")], NODE, delete_pod=1, rpc_failed=2, rpc_lost=1
    )


def named_twice() -> Instance:
    """A pod that names one claim twice, and one that names it once."""
    return instance([pod("p1", "c1", "c1"), pod("p2", "c1")], [claim("c1")], [device("d1")], NODE, delete_pod=1)


def reused_device() -> Instance:
    """One device, and a pod that is deleted by force while it has it."""
    return instance([pod("p1", "c1"), pod("p2", "c2")], [claim("c1"), claim("c2")], [device("d1")], NODE, force_delete_pod=2, finish_pod=-1)


def losing_devices() -> Instance:
    """Two pods, and devices that may vanish."""
    pods = [pod("p1", "c1"), pod("p2", "c2")]
    return instance(pods, [claim("c1"), claim("c2")], [device("d1"), device("d2")], NODE, device_vanishes=1, finish_pod=-1, delete_pod=1)


def orphans() -> Instance:
    """Pods that disappear while the kubelet is down."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1")], [claim("c1")], [device("d1")], NODE, kubelet_crash=2, force_delete_pod=2, rpc_timeout=1
    )


def seen_late() -> Instance:
    """A pod that is bound before the claim controller has heard of it."""
    return instance(
        [pod("p1", "c1", present=False)],
        [claim("c1")],
        [device("d1")],
        CONTROL + " claim-controller",
        force_delete_pod=1,
    )


def abandoned() -> Instance:
    """A claim that is left allocated without a consumer, and deleted."""
    return instance(
        [pod("p1", "c1")],
        [claim("c1")],
        [device("d1")],
        CONTROL + " claim-controller",
        api_refused=2,
        delete_claim=1,
    )


def rebooted() -> Instance:
    """A node that is rebooted."""
    return instance([pod("p1", "c1")], [claim("c1")], [device("d1")], NODE, node_reboot=2, rpc_lost=1)


def two_drivers() -> Instance:
    """Claims with devices of two drivers, one result with admin access."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1", "c2", present=False)],
        [claim("c1", requests=("gpu", "net")), claim("c2", requests=("net", "admin"))],
        [device("d1"), device("e1", driver=NET), device("e2", driver=NET)],
        NODE,
        kubelet_crash=1,
        plugin_crash=1,
        rpc_failed=2,
        rpc_lost=1,
        rpc_timeout=1,
        finish_pod=-1,
        delete_pod=1,
        force_delete_pod=1,
    )


def generated_on_nodes() -> Instance:
    """Generated claims that come back under their name, on two nodes, with the real claim controller."""
    return instance(
        [pod("p1", "c1", template=True), pod("p2", "c2", "c3")],
        [claim("c1", "p1"), claim("c2"), claim("c3")],
        [device("d1"), device("d2", "n2"), device("d3")],
        NODE + " claim-controller",
        nodes=("n1", "n2"),
        kubelet_crash=1,
        finish_pod=-1,
        delete_pod=1,
        force_delete_pod=1,
        delete_claim=2,
        rpc_timeout=1,
    )


def everybody() -> Instance:
    """All writers."""
    return instance(
        [pod("p1", "c1"), pod("p2", "c1", "c2"), pod("p3", "c3", template=True)],
        [claim("c1"), claim("c2"), claim("c3", "p3")],
        [device("d1"), device("d2", conditions=True)],
        NODE + " scheduler driver-controller claim-controller",
        kubelet_crash=1,
        plugin_crash=1,
        finish_pod=-1,
        delete_pod=1,
        scheduler_crash=1,
        rpc_lost=1,
    )


CASES: dict[str, Callable[[], Instance]] = {
    make.__name__: make
    for make in (
        one_pod,
        two_pods,
        shared,
        racing,
        opposite,
        two_schedulers,
        generated,
        controlled,
        binding,
        one_node,
        joined,
        named_twice,
        reused_device,
        rebooted,
        losing_devices,
        orphans,
        seen_late,
        abandoned,
        two_drivers,
        generated_on_nodes,
        everybody,
    )
}

# for each variant an instance in which it makes a difference
VARIANTS: dict[str, Callable[[], Instance]] = {
    "allocation-only-assumed": two_pods,
    "bind-verifies-pod": two_pods,
    "claim-controller-forgets-deleted": generated,
    "claim-controller-keeps-finished": controlled,
    "claim-controller-no-reservation": controlled,
    "claim-controller-partial-status": generated,
    "kubelet-checks-holders": one_node,
    "kubelet-counts-references": one_node,
    "kubelet-forgets-after-first-driver": two_drivers,
    "kubelet-late-checkpoint": one_node,
    "kubelet-loop-waits": one_node,
    "plugin-ignores-inventory": losing_devices,
    "plugin-keeps-record-at-reboot": rebooted,
    "plugin-looks-at-client": one_node,
    "plugin-no-overlap-check": reused_device,
    "prebind-verifies-claim": two_pods,
    "reserve-rejects-published": shared,
    "terminal-pod-guard": controlled,
    "unchecked-revision": racing,
    "unreserve-assumes-answer": opposite,
    "unreserve-keeps-reservation": opposite,
    "unreserve-no-restore": opposite,
}
