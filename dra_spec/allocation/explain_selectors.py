"""What is wrong with selectors themselves: those that no device can satisfy, pairs that exclude each other, attributes that no device of
the inventory has, and look-ups that fail on a device without the attribute.

What is said of all devices is proved (selectors.analysis); what is said of the inventory is tried on it. Public: `insights`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import attrs

from dra_spec.allocation.z3_problem import Call, Problem
from dra_spec.resources.claims import ExactRequest
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.problems import Where
from dra_spec.selectors import Selector, SelectorDevice, SelectorError, SelectorSyntaxError, UnsupportedFeature, compile_selector
from dra_spec.selectors.analysis import Answer, Read, disjoint, fails_without, reads, satisfiable

MAX_PAIRS = 32  # of selectors that are compared
SHOWN = 3


@attrs.frozen
class Insight:
    """`kind`: unsatisfiable, disjoint, unknown-attribute or unguarded; `where`: the selector; `other`: the second one of a pair."""

    kind: str
    request: str
    text: str = attrs.field(eq=False)
    where: Where
    other: Where | None = None


@attrs.frozen(eq=False)
class _Asked:
    """A selector of a request. `owner`: whose it is, in words."""

    owner: str
    selector: CelSelector
    compiled: Selector

    @property
    def shown(self) -> str:
        text = " ".join(self.selector.expression.split())
        return repr(text if len(text) <= 80 else text[:77] + "...")


def insights(problem: Problem, call: Call) -> tuple[Insight, ...]:
    """For the requests of the call whose selectors hold on no device of the inventory, or fail on one. Nothing is said of a selector that
    does not compile."""
    devices = [SelectorDevice.of(s.spec.driver, s.spec.pool.name, d) for s in problem.slices for d in s.spec.devices]
    devices = [d for d in devices if not d.ambiguous]
    found: dict[Insight, None] = {}
    for claim in call.claims:
        for request in claim.spec.requests:
            for name, leaf in request.leaves:
                label = f"request {name} of {claim.label}"
                found.update(dict.fromkeys(_of_request(problem, label, leaf, devices)))
    return tuple(found)


def _of_request(problem: Problem, label: str, leaf: ExactRequest, devices: Sequence[SelectorDevice]) -> Iterator[Insight]:
    device_class = problem.classes.get(leaf.device_class_name)
    own = device_class.spec.selectors if device_class is not None else ()
    try:
        asked = [_asked(problem, f"class {leaf.device_class_name}", s) for s in own]
        asked += [_asked(problem, label, s) for s in leaf.selectors]
    except (SelectorSyntaxError, UnsupportedFeature):
        return
    passed, failures = _tried(asked, devices)
    for each in asked:
        yield from _unguarded(label, each, failures.get(id(each), []))
    if passed:
        return
    impossible = [each for each in asked if satisfiable(each.compiled).answer is Answer.NO]
    for each in impossible:
        text = f"no device at all can satisfy the selector of {each.owner}: {each.shown}"
        yield Insight("unsatisfiable", label, text, each.selector.at)
    rest = [each for each in asked if each not in impossible]
    yield from _pairs(label, rest)
    for each in rest:
        if not any(each.compiled.matches(d) is True for d in devices):
            yield from _unknown(label, each, devices)


def _asked(problem: Problem, owner: str, selector: CelSelector) -> _Asked:
    return _Asked(owner, selector, compile_selector(selector.expression, selector.at, problem.environment))


def _tried(asked: Sequence[_Asked], devices: Sequence[SelectorDevice]) -> tuple[bool, dict[int, list[SelectorDevice]]]:
    """Whether some device passes all selectors, and for each selector the devices on which it fails, asked in upstream's order."""
    passed = False
    failures: dict[int, list[SelectorDevice]] = {}
    for device in devices:
        for each in asked:
            answer = each.compiled.matches(device)
            if isinstance(answer, SelectorError):
                failures.setdefault(id(each), []).append(device)
            if answer is not True:
                break
        else:
            passed = True
    return passed, failures


def _unguarded(label: str, each: _Asked, failing: Sequence[SelectorDevice]) -> Iterator[Insight]:
    """Look-ups that are the reason of a failure on a device of the inventory."""
    if not failing:
        return
    for read, finding in fails_without(each.compiled).items():
        lacking = [d.name for d in failing if not _has(d, read)]
        if finding.answer is Answer.YES and lacking:
            more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            text = (
                f"the selector of {each.owner} fails on a device without {read}, as on {', '.join(lacking[:SHOWN])}{more}, which ends the "
                f"pod's attempt: guard it with has({read}) && ..., or read {_optional(read)}"
            )
            yield Insight("unguarded", label, text, each.selector.at)


def _optional(read: Read) -> str:
    return f"device.{read.of}[{read.domain!r}].?{read.name}.orValue(...)"


def _pairs(label: str, asked: Sequence[_Asked]) -> Iterator[Insight]:
    pairs = [(a, b) for i, a in enumerate(asked) for b in asked[i + 1 :]]
    for first, second in pairs[:MAX_PAIRS]:
        if disjoint(first.compiled, second.compiled).answer is Answer.YES:
            whose = f"of {first.owner}" if first.owner == second.owner else f"of {first.owner} and of {second.owner}"
            text = f"selectors {whose} exclude each other, so no device can satisfy both: {first.shown} and {second.shown}"
            yield Insight("disjoint", label, text, second.selector.at, first.selector.at)


def _unknown(label: str, each: _Asked, devices: Sequence[SelectorDevice]) -> Iterator[Insight]:
    names, _ = reads(each.compiled)
    for read in sorted(names):
        if not any(_has(d, read) for d in devices):
            text = f"the selector of {each.owner} reads {read}, which no device of the inventory has{_meant(read, devices)}"
            yield Insight("unknown-attribute", label, text, each.selector.at)


def _has(device: SelectorDevice, read: Read) -> bool:
    return read.name in getattr(device, read.of).get(read.domain, {})


def _meant(read: Read, devices: Sequence[SelectorDevice]) -> str:
    """A hint at what was probably meant: the same name elsewhere, or a name that looks alike."""
    known = {Read(of, domain, n) for d in devices for of in ("attributes", "capacity") for domain, m in getattr(d, of).items() for n in m}
    same = sorted(r for r in known if r.name == read.name)
    near = difflib.get_close_matches(read.name, sorted({r.name for r in known if r.domain == read.domain}), 1)
    alike = same or sorted(r for r in known if r.domain == read.domain and r.name in near)
    return f"; did you mean {alike[0]}?" if alike else ""


__all__ = ["Insight", "insights"]
