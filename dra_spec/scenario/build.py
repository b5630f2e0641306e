"""From a model file to a scenario: objects read, instance made, protocol assembled, promises bound."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dra_spec.explorer.model import Model, Property
from dra_spec.properties.assumptions import ASSUMPTIONS
from dra_spec.properties.bind import bind, missing_writers, unmet_assumptions
from dra_spec.properties.errors import InvariantError
from dra_spec.properties.invariant import Head, Invariant, Promise, find, load_all
from dra_spec.protocol.assembly import assemble
from dra_spec.protocol.instance import Instance
from dra_spec.scenario import objects
from dra_spec.scenario.allocator import allocators
from dra_spec.scenario.cluster import Cluster, cluster
from dra_spec.scenario.modelfile import ModelFile, Overrides
from dra_spec.scenario.modelfile import Promise as Wanted
from dra_spec.scenario.scenario import Scenario
from dra_spec.scenario.strict import InputError, Place, nearest
from dra_spec.scenario.variants import Chosen, choose


def build(file: ModelFile, overrides: Overrides | None = None, name: str | None = None) -> Scenario:
    """The scenario of a model file with what the command line changes in it.

    `name`: how the model is called in reports, if not as in the file. Raises `InputError`, `ManifestError`, `InvariantError`.
    """
    overrides = overrides or Overrides()
    changed = overrides.apply(file)
    texts = [(str(file.path), text) for text in changed.objects]
    read = objects.read(changed.manifests, texts, changed.bound("replicas") or 1)
    found = cluster(
        read.loaded, pods=changed.bound("pods"), created_later=changed.created_later, schedulers=changed.bounds.get("schedulers")
    )
    return make(changed, overrides, attrs.evolve(found, notes=[*read.clashes, *found.notes]), name or file.name)


def make(file: ModelFile, overrides: Overrides, found: Cluster, name: str) -> Scenario:
    """The scenario of a cluster: `file` says which writers, budgets, bounds and promises."""
    engine, allocate, unsupported, misfits = allocators(found)
    any_allocation = None
    if file.allocation == "any":
        from dra_spec.scenario.choices import EveryAllocation  # the solver takes its time to load

        any_allocation = EveryAllocation(found, engine, allocate, unsupported, file.bound("allocations") or 1)
    instance = Instance(
        pods=found.pods,
        claims=found.claims,
        nodes=found.nodes,
        devices=found.devices,
        allocate=allocate,
        writers=frozenset(file.writers),
        schedulers=found.schedulers,
        lag=file.bound("lag") or 1,
        budgets={name: count for name, count in file.budgets.items() if count},
        binding_conditions=file.features.get("DRADeviceBindingConditions", False),
        any_node=file.any_node,
        any_allocation=any_allocation,
    )
    chosen = choose(file.variants, file.repaired)
    wanted = _wanted(file, overrides, chosen)
    invariants = _invariants(wanted, overrides, instance)
    names = {invariant.name for invariant in invariants}
    for promise in file.violates:
        if promise not in names and not (overrides.invariants or overrides.assertions or chosen.breaks):
            raise InputError(f"{name}: violates names {promise!r}, which is not checked{nearest(promise, names)}", Place(str(file.path)))
    parts = assemble(instance, chosen.variants)
    for unused in sorted(parts.unused):
        if unused in chosen.asked:
            raise InputError(f"variant {chosen.asked[unused]}: no writer of the model {name} takes the action {unused}")
    properties: list[Property] = [each for invariant in invariants for each in bind(invariant, instance)]
    expected, expectations = _expected(file, overrides, chosen, wanted)
    return Scenario(
        name=name,
        file=file,
        overrides=overrides,
        instance=instance,
        model=Model(name, parts.slots, parts.actions, properties, names=_names(instance), live=parts.live),
        invariants={invariant.name: invariant for invariant in invariants},
        expected=expected,
        expectations=expectations,
        assumptions=_open_windows(invariants, instance),
        variants=tuple(variant.name for variant in chosen.variants),
        unsupported=unsupported,
        notes=[*found.notes, *_initial_notes(found)],
        warnings=[*found.warnings, *misfits],
    )


def _names(instance: Instance) -> dict[str, Sequence[str]]:
    """The objects that may turn out to be interchangeable."""
    return {
        "pod": [pod.name for pod in instance.pods],
        "claim": [claim.name for claim in instance.claims],
        "device": [device.name for device in instance.devices],
        "node": list(instance.nodes),
    }


def _wanted(file: ModelFile, overrides: Overrides, chosen: Chosen) -> Sequence[Wanted]:
    """The promises to check by name; empty: all that make sense."""
    if overrides.invariants:
        listed = {promise.name: promise for promise in file.invariants}
        return [listed.get(name, Wanted(name)) for name in overrides.invariants]
    if overrides.assertions:
        return []
    if chosen.breaks:
        known = [find(name) for name in chosen.breaks]
        return [Wanted(i.name) for i in known if i.needs <= set(file.writers)] or [Wanted(i.name) for i in known]
    return file.invariants


def _invariants(wanted: Sequence[Wanted], overrides: Overrides, instance: Instance) -> list[Invariant]:
    found = [_find(promise) for promise in wanted]
    for number, text in enumerate(overrides.assertions, 1):
        found.append(Invariant.adhoc(text, f"assert-{number}"))
    if found:
        return found
    return [*load_all(wanted=lambda head: applicable(head, instance)).values()]


def applicable(invariant: Head, instance: Instance) -> bool:
    """Whether an instance is judged by an invariant unasked: the writers that it needs take part, its accepted windows are closed."""
    if invariant.kind is Promise.LEADS_TO or invariant.on_request:
        return False
    return not missing_writers(invariant, instance) and not unmet_assumptions(invariant, instance)


def _find(promise: Wanted) -> Invariant:
    try:
        invariant = find(promise.name)
    except InvariantError as error:
        raise InputError(str(error), promise.place) from None
    for name in promise.assumptions:
        if name not in invariant.assumptions:
            hint = nearest(name, invariant.assumptions or ASSUMPTIONS)
            raise InputError(f"{promise.name} has no assumption {name!r}{hint}", promise.place)
    return invariant


def _open_windows(invariants: Sequence[Invariant], instance: Instance) -> dict[str, Sequence[str]]:
    """Per promise: the accepted windows that this model leaves open, so that a violation may be an accepted one."""
    return {i.name: [f"{name}: {i.assumptions[name]}" for name in unmet_assumptions(i, instance)] for i in invariants}


def _expected(file: ModelFile, overrides: Overrides, chosen: Chosen, wanted: Sequence[Wanted]) -> tuple[str | None, dict[str, str]]:
    """The verdict that is expected of the model and of single promises; None if nobody can say."""
    if overrides.bounds or overrides.budgets or overrides.assertions or overrides.allocation:
        return None, {}
    if file.repaired and not overrides.variants:
        verdict = file.expected_repaired
        return verdict, {} if verdict == "holds" else {promise.name: promise.expected for promise in wanted if promise.expected}
    if overrides.variants:  # those of the file itself are part of the model
        return ("violated" if chosen.breaks and not file.repaired else None), {}
    expectations = {promise.name: promise.expected for promise in wanted if promise.expected is not None}
    if overrides.invariants:
        expectations |= {name: "violated" for name in file.violates if name in overrides.invariants}
        if file.expected == "holds":
            return "holds", {}
        known = [expectations.get(promise.name) for promise in wanted]
        return ("violated" if "violated" in known else "holds" if file.violates else None), expectations
    return file.expected, expectations | dict.fromkeys(file.violates, "violated")


def _initial_notes(found: Cluster) -> list[str]:
    """What the manifests say about the state of claims: the model starts with unallocated ones."""
    notes = []
    for claim in found.named.values():
        if claim.status.allocation is not None:
            notes.append(f"{claim.where('status.allocation').place}: claim {claim.name} is allocated already (initial state)")
        elif claim.status.reserved_for:
            notes.append(f"{claim.where('status.reservedFor').place}: claim {claim.name} is reserved already (initial state)")
    return notes
