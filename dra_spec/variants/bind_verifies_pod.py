"""Repair of H12: when a binding is answered with an error, the scheduler looks at the pod before it gives the claims back.

In 1.37.2 any error of Bind leads to Unreserve; if the binding was applied nevertheless, the bound pod loses its reservations while the
kubelet starts it. Here the scheduler reads the pod: bound to the chosen node means success, unbound means one more try, anything else is a
failure.

Source: own proposal; upstream pkg/scheduler/schedule_one.go:handleBindingCycleError, read at v1.37.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_spec.explorer.model import Outcome, View
from dra_spec.protocol.scheduler_binding import bind, bind_request, bound, failed_bind
from dra_spec.protocol.scheduler_state import Binding, Scheduler, Step
from dra_spec.variants.base import Variant, VariantKind

_LOOK = 1  # `tries` of the step Bind when the pod is to be read


def _bind(v: View, s: Scheduler, scheduler: str, pod: str) -> Iterator[Outcome]:
    """As B2; after an unknown answer, a GET of the pod in a step of its own decides."""
    if v[s.binding[pod]].step is not Step.BIND:
        return
    if v[s.binding[pod]].tries == _LOOK:
        yield _look(v, s, pod)
        return
    for answer in bind_request(v, s, pod):
        if answer.label == "ok":
            bound(answer, s, pod)
        elif answer.label in ("refused", "applied-error", "conflict"):
            answer[s.binding[pod]] = Binding(Step.BIND, 0, _LOOK)
        else:
            answer[s.binding[pod]] = failed_bind(s, pod)
        yield answer


def _look(v: View, s: Scheduler, pod: str) -> Outcome:
    live = v[s.api.pod[pod]]
    if live.exists and live.node is not None and live.node == v.value(s.node[pod]):
        out = v.outcome("bound")
        bound(out, s, pod)
        s.pods.close(out, pod)
    elif live.exists and live.node is None and not live.deleting:
        out = v.outcome("unbound")
        out[s.binding[pod]] = Binding(Step.BIND)
    else:
        out = v.outcome("gone")
        out[s.binding[pod]] = failed_bind(s, pod)
    return out


VARIANT = Variant(
    name="bind-verifies-pod",
    bug="H12",
    kind=VariantKind.REPAIR,
    summary="After an error of Bind the scheduler reads the pod, and gives its claims back only if it is not bound",
    source="own proposal; kubernetes v1.37.2, schedule_one.go:handleBindingCycleError",
    found_by=("bound-implies-reserved",),
    replaces={bind.name: _bind},
)
