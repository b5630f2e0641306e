"""What there is to list and to describe: models, invariants, variants, actions, counterexamples."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping

import attrs

from dra_spec.explorer.model import ActionType
from dra_spec.properties.invariant import Invariant, load_all
from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import ModelFile, load
from dra_spec.traces import tracefile
from dra_spec.variants.base import Variant, variants


@attrs.frozen
class Entry:
    """One thing: its name, a sentence about it, and all that there is to say as (label, text) pairs, "" as label for a paragraph."""

    kind: str
    name: str
    summary: str
    details: tuple[tuple[str, str], ...] = ()


def models() -> list[Entry]:
    return [_model(load(path)) for path in shipped("models").values()]


def _model(file: ModelFile) -> Entry:
    budgets = ", ".join(f"{name} {count if count >= 0 else 'any number'}" for name, count in file.budgets.items())
    promises = ", ".join(f"{p.name}{f' ({p.expected})' if p.expected else ''}" for p in file.invariants)
    details = [
        ("", file.description),
        ("writers", ", ".join(file.writers)),
        ("features", ", ".join(name for name, on in file.features.items() if on)),
        ("faults and events", budgets),
        ("bounds", ", ".join(f"{name} {value}" for name, value in file.bounds.items()) or f"lag {file.bound('lag')}"),
        *([("allocation", "any that is feasible, not only upstream's")] if file.allocation == "any" else []),
        ("invariants", promises or "all that its writers allow"),
        ("expected", f"{file.expected}; with all repairs: {file.expected_repaired}"),
        ("shows", ", ".join(file.shows)),
        ("file", str(file.path)),
    ]
    return Entry("model", file.name, _sentence(file.description), _told(details))


def invariants() -> list[Entry]:
    return [_invariant(invariant) for invariant in load_all().values()]


def _invariant(invariant: Invariant) -> Entry:
    details = [
        ("", invariant.statement),
        ("kind", invariant.kind.value),
        ("source", "; ".join(invariant.source)),
        ("needs", ", ".join(sorted(invariant.needs))),
        ("actions", ", ".join(invariant.actions) if invariant.actions != ("*",) else ""),
        ("when", " ".join(invariant.when.text.split()) if invariant.when is not None else ""),
        ("goal" if invariant.when is not None else "CEL", " ".join(invariant.program.text.split())),
        ("fair to", ", ".join(invariant.fair) if invariant.when is not None else ""),
        *((f"assumes {name}", " ".join(text.split())) for name, text in invariant.assumptions.items()),
    ]
    return Entry("invariant", invariant.name, invariant.statement, _told(details))


def all_variants() -> list[Entry]:
    shown: dict[str, list[str]] = {}
    for name, path in shipped("models").items():
        for variant in load(path).shows:
            shown.setdefault(variant, []).append(name)
    return [_variant(variant, shown.get(variant.name, [])) for variant in variants().values()]


def _variant(variant: Variant, models: list[str]) -> Entry:
    doc = importlib.import_module(next(iter(variant.replaces.values())).__module__).__doc__ or ""
    details = [
        ("", variant.summary),
        ("kind", variant.kind.value),
        ("about", variant.bug),
        ("found by", ", ".join(variant.found_by)),
        ("replaces", ", ".join(variant.replaces)),
        ("shown by", ", ".join(models)),
        ("source", variant.source),
        ("", doc.strip()),
    ]
    return Entry("variant", variant.name, f"{variant.kind.value} {variant.bug}: {variant.summary}", _told(details))


def actions() -> list[Entry]:
    return [_action(found) for _, found in sorted(action_types().items())]


def action_types() -> dict[str, ActionType]:
    """All action types of the protocol by name."""
    package = importlib.import_module("dra_spec.protocol")
    found: dict[str, ActionType] = {}
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"dra_spec.protocol.{module.name}")).values():
            if isinstance(value, ActionType):
                found[value.name] = value
    return found


def _action(found: ActionType) -> Entry:
    replaced = [variant.name for variant in variants().values() if found.name in variant.replaces]
    details = [
        ("", " ".join((found.fn.__doc__ or "").split())),
        ("writer", found.writer),
        ("step", found.step),
        ("kind", found.kind.value),
        ("source", found.source),
        ("replaced by", ", ".join(replaced)),
    ]
    return Entry("action", found.name, found.summary, _told(details))


def counterexamples() -> list[Entry]:
    entries = []
    for name, path in shipped("counterexamples").items():
        trace, steps = tracefile.head(path)
        details = [
            ("promise", f"{trace.promise}: {trace.statement}"),
            ("model", trace.model.name),
            ("variants", ", ".join(trace.model.variants)),
            ("steps", str(steps)),
            ("command", trace.command),
            ("file", str(path)),
        ]
        entries.append(Entry("counterexample", name, f"{trace.promise} in {trace.model.name}, {steps} steps", _told(details)))
    return entries


CATALOGUE: Mapping[str, Callable[[], list[Entry]]] = {
    "models": models,
    "invariants": invariants,
    "variants": all_variants,
    "actions": actions,
    "counterexamples": counterexamples,
}
LISTED = ("models", "invariants", "variants", "counterexamples")  # without being asked for


def _sentence(text: str) -> str:
    head, dot, _ = text.partition(". ")
    return head + dot.strip()


def _told(details: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((label, text) for label, text in details if text)
