"""Variants by name, or by the public bug that they are about; and the model that shows one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dra_spec.scenario.content import shipped
from dra_spec.scenario.modelfile import load
from dra_spec.scenario.strict import InputError, nearest
from dra_spec.variants.base import Variant, VariantKind, repairs, variants


@attrs.frozen(eq=False)
class Chosen:
    """The variants of a model.

    `breaks`: the promises that the defects among them are known to break; `mends`: those that fail without the repairs; `asked`: replaced
    action -> the variant that was asked for by name.
    """

    variants: Sequence[Variant] = ()
    breaks: Sequence[str] = ()
    mends: Sequence[str] = ()
    asked: Mapping[str, str] = attrs.field(factory=dict)


def lookup(name: str) -> Variant:
    """A variant by its name, or by its bug if only one variant is about that. Raises `InputError`."""
    known = variants()
    if name in known:
        return known[name]
    about = [variant for variant in known.values() if variant.bug.lower() == name.lower()]
    if len(about) == 1:
        return about[0]
    if about:
        raise InputError(f"several variants are about {name}: {', '.join(v.name for v in about)}")
    raise InputError(f"no variant {name!r}{nearest(name, [*known, *(v.bug for v in known.values())])}")


def choose(names: Sequence[str], repaired: bool) -> Chosen:
    """The variants of these names, and with `repaired` all repairs that replace nothing that a named one replaces. Raises `InputError`."""
    named = list({variant.name: variant for variant in map(lookup, names)}.values())
    asked: dict[str, str] = {}
    for variant in named:
        for action in variant.replaces:
            if action in asked:
                raise InputError(f"the variants {asked[action]} and {variant.name} both replace the action {action}")
            asked[action] = variant.name
    added = [r for r in repairs() if r not in named and not set(r.replaces) & set(asked)] if repaired else []
    breaks = dict.fromkeys(name for v in named if v.kind is VariantKind.DEFECT for name in v.found_by)
    mends = dict.fromkeys(name for v in named if v.kind is VariantKind.REPAIR for name in v.found_by)
    return Chosen([*named, *added], tuple(breaks), tuple(mends), asked)


def default_model(names: Sequence[str]) -> str:
    """The shipped model that shows a variant: the first that lists it in `shows`. Raises `InputError`."""
    wanted = {lookup(name).name for name in names}
    for name, path in shipped("models").items():
        if wanted & set(load(path).shows):
            return name
    raise InputError(f"no shipped model shows the variant {', '.join(sorted(wanted))}; name a model to check it on")
