"""Defects and repairs as overridden methods of the writers' classes, by the names that the model's variants have.

A variant is a mapping from a class to the methods that replace its own: `World(..., variants=("unreserve-no-restore",))` builds each
writer as a subclass with the methods of all variants asked for. What a variant does not touch is as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dra_spec.reference.variants_controller import CONTROLLER
from dra_spec.reference.variants_node import NODE
from dra_spec.reference.variants_scheduler import SCHEDULER

W = TypeVar("W")

REGISTRY = {**SCHEDULER, **CONTROLLER, **NODE}


class UnknownVariant(Exception):
    """The reference does not have a variant of this name."""


def check_variants(names: Iterable[str]) -> None:
    """Raises UnknownVariant for a name that the reference does not have."""
    for name in names:
        if name not in REGISTRY:
            raise UnknownVariant(f"the reference has no variant {name!r}; it has {', '.join(sorted(REGISTRY))}")


def specialise(writer: type[W], names: Iterable[str]) -> type[W]:
    """The class of a writer with the variants' methods in it. Raises ValueError if two variants replace one method."""
    methods: dict[str, Callable[..., Any]] = {}
    for name in names:
        for method, fn in REGISTRY[name].get(writer.__name__, {}).items():
            if method in methods:
                raise ValueError(f"two variants replace {writer.__name__}.{method}, the last is {name}")
            methods[method] = fn
    return type(writer.__name__, (writer,), methods) if methods else writer
