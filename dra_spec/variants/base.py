"""What a variant is, and how variants are found.

The protocol is Kubernetes 1.37.2 as released. A variant replaces the function of one or more actions: a *defect* puts a public bug of some
time back in, a *repair* closes a hazard that 1.37.2 has. Each variant is a module of this package with a constant `VARIANT`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from enum import Enum

import attrs

from dra_spec.explorer.model import ActionFunction


class VariantKind(Enum):
    """A bug put in, or a hazard closed."""

    DEFECT = "defect"
    REPAIR = "repair"


@attrs.frozen(eq=False)
class Variant:
    """A replacement of actions.

    `name`: as on the command line, unique. `bug`: the public bug ("B02") or the hazard of 1.37.2 ("H1") that it is about. `summary`: one
    sentence. `source`: where it is public. `found_by`: the promises that fail with a defect, or without a repair. `replaces`: action type
    name -> the function instead.
    """

    name: str
    bug: str
    kind: VariantKind
    summary: str
    source: str
    found_by: tuple[str, ...]
    replaces: Mapping[str, ActionFunction]


class UnknownVariant(Exception):
    """No variant has this name; the message lists those that exist."""


def variants() -> dict[str, Variant]:
    """All variants by name, in the order of their names."""
    package = importlib.import_module("dra_spec.variants")
    found: dict[str, Variant] = {}
    for module in pkgutil.iter_modules(package.__path__):
        variant = getattr(importlib.import_module(f"dra_spec.variants.{module.name}"), "VARIANT", None)
        if isinstance(variant, Variant):
            if variant.name in found:
                raise ValueError(f"two variants are called {variant.name}")
            found[variant.name] = variant
    return dict(sorted(found.items()))


def variant(name: str) -> Variant:
    """The variant of a name. Raises `UnknownVariant`."""
    known = variants()
    if name not in known:
        raise UnknownVariant(f"unknown variant {name!r}; there are: {', '.join(known) or 'none'}")
    return known[name]


def repairs() -> list[Variant]:
    """All repairs: together they make the repaired protocol."""
    return [v for v in variants().values() if v.kind is VariantKind.REPAIR]
