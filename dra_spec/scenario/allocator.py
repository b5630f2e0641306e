"""The allocator of a model: `dra_spec.allocation` over the cluster's inventory, with what it cannot do named before the search starts."""

from __future__ import annotations

from collections.abc import Iterable

from dra_spec.allocation.allocator import Allocator, ClaimResult
from dra_spec.allocation.errors import DoesNotFit, FatalAllocation, UnsupportedFeature
from dra_spec.allocation.inventory import Inventory
from dra_spec.protocol.instance import Allocate
from dra_spec.protocol.objects import Allocation, DeviceResult
from dra_spec.resources.meta import CelSelector
from dra_spec.resources.problems import ManifestError, Problem
from dra_spec.scenario.cluster import Cluster
from dra_spec.scenario.encoded import remark
from dra_spec.scenario.strict import nearest
from dra_spec.selectors import compile_selector

_NOTHING: frozenset[str] = frozenset()


def allocator(found: Cluster) -> tuple[Allocate, list[str], list[str]]:
    """The allocate function, what it does not encode (file:line: feature), and warnings (a pod that fits no node).

    The list of what is not encoded grows if a search meets more. Raises `ManifestError` for a request that names a missing class, or a
    selector that does not compile.
    """
    return allocators(found)[1:]


def allocators(found: Cluster) -> tuple[Allocator, Allocate, list[str], list[str]]:
    """The allocator itself and what `allocator` gives."""
    notes: list[str] = []
    _check(found, notes)
    inventory = Inventory.of(found.loaded.classes, found.loaded.slices, found.loaded.nodes, found.loaded.taint_rules)
    engine = Allocator(inventory)
    answers: dict[tuple[tuple[str, ...], str, frozenset[str]], tuple[Allocation, ...] | Exception] = {}

    def answer(claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> tuple[Allocation, ...] | Exception:
        try:
            results = engine.allocate([found.sources[name] for name in claims], node, in_use)
        except UnsupportedFeature as error:
            note(notes, error)
            return FatalAllocation(str(error))
        except (DoesNotFit, FatalAllocation) as error:
            return error
        return tuple(as_allocation(result) for result in results)

    def allocate(claims: tuple[str, ...], node: str, in_use: frozenset[str]) -> tuple[Allocation, ...]:
        key = (claims, node, in_use)
        if key not in answers:
            answers[key] = answer(*key)
        result = answers[key]
        if isinstance(result, Exception):
            raise result
        return result

    return engine, allocate, notes, [*_empty_classes(found, engine), *_tried(found, allocate, notes)]


def as_allocation(result: ClaimResult) -> Allocation:
    """What the protocol knows of a result."""
    devices = tuple(DeviceResult(r.request, r.name, r.admin, r.binding_conditions, r.binding_failure_conditions) for r in result.results)
    return Allocation(devices, result.nodes)


def _empty_classes(found: Cluster, engine: Allocator) -> list[str]:
    """Warnings about classes that the model's requests name and that no device matches."""
    empty = set(engine.classes_without_devices()) & _classes_used(found)
    return [remark(c.where("metadata.name"), f"no device matches the class {c.name}") for c in found.loaded.classes if c.name in empty]


def _classes_used(found: Cluster) -> set[str]:
    return {leaf.device_class_name for source in found.sources.values() for request in source.requests for _, leaf in request.leaves}


def _tried(found: Cluster, allocate: Allocate, notes: list[str]) -> list[str]:
    """Asks for each pod on each node of the empty cluster; warnings about pods that fit nowhere."""
    warnings = []
    for pod in found.pods:
        claims = tuple(dict.fromkeys(ref.claim for ref in pod.claims))
        reasons = []
        for node in found.nodes if pod.node is None else [pod.node]:
            try:
                allocate(claims, node, _NOTHING)
            except (DoesNotFit, FatalAllocation) as error:
                reasons.append(str(error).splitlines()[0])
        if not notes and len(reasons) == (len(found.nodes) if pod.node is None else 1):
            warnings.append(f"pod {pod.name} fits no node, even if nothing else runs: {_shown(reasons)}")
    return warnings


def _shown(reasons: Iterable[str]) -> str:
    different = list(dict.fromkeys(reasons))
    return different[0] + (f" (and {len(different) - 1} more)" if len(different) > 1 else "")


def _check(found: Cluster, notes: list[str]) -> None:
    """Each class that a request names must be there, also one of a claim that no pod uses, and each selector that counts must compile."""
    known = {each.name for each in found.loaded.classes}
    used = _classes_used(found)
    problems = []
    sources = [*found.sources.values(), *(claim.spec for claim in found.loaded.claims)]
    for source in {id(s): s for s in sources}.values():
        for request in source.requests:
            for name, leaf in request.leaves:
                for selector in leaf.selectors:
                    _compiled(selector, notes)
                if leaf.device_class_name not in known:
                    text = f"request {name}: there is no DeviceClass {leaf.device_class_name!r}{nearest(leaf.device_class_name, known)}"
                    problems.append(Problem("DRA202", text, request.at if not leaf.at.line else leaf.at, leaf.device_class_name))
    if problems:
        raise ManifestError(problems)
    for each in found.loaded.classes:
        for selector in each.spec.selectors if each.name in used else ():
            _compiled(selector, notes)


def _compiled(selector: CelSelector, notes: list[str]) -> None:
    """Compiles a selector for its errors only. Raises `ManifestError`."""
    try:
        compile_selector(selector.expression, selector.at)
    except UnsupportedFeature as error:
        note(notes, error)


def note(notes: list[str], error: UnsupportedFeature) -> None:
    """Adds what is not encoded to the list, once."""
    text = f"{error.where.place}: {error.feature}" if error.where.place else error.feature
    if text not in notes:
        notes.append(text)
