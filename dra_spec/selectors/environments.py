"""What an expression may use, by Kubernetes version and the API server's feature gates.

Source: k8s.io/dynamic-resource-allocation cel and k8s.io/apiserver pkg/cel/environment, v0.37.2, whose options name the version that
introduced each: `device` 1.31, its allowMultipleAllocations 1.34; list attributes and includes() 1.36; the list extension of cel-go 1.34;
two-variable comprehensions 1.32 and semver with normalisation 1.33, so all four versions have these.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dra_spec.selectors import types as t
from dra_spec.selectors.declarations import Overload, functions
from dra_spec.selectors.types import Type

# Limits of the API, resource.k8s.io/v1: longest domain, identifier, driver name, attribute value; entries per device; values per list.
MAX_DOMAIN, MAX_ID, MAX_DRIVER, MAX_VALUE, MAX_ENTRIES, MAX_LIST = 63, 32, 63, 64, 32, 48
VERSIONS = ("1.34", "1.35", "1.36", "1.37")
LATEST = VERSIONS[-1]
# A scheduler knows the list extension from 1.34 on. An API server takes in new objects only what the release before knows, too.
_LIST_EXTENSION = frozenset({"slice", "flatten", "lists.range", "reverse", "distinct", "sort", "@sortByAssociatedKeys"})


@attrs.frozen
class Environment:
    """`stored`: expressions in the API already (as the scheduler compiles them: all is known, whatever the gates say); else new ones.

    `version`: of Kubernetes, one of VERSIONS. Costs are those of 1.37 for all.

    `consumable`, `list_types`: the gates DRAConsumableCapacity and DRAListTypeAttributes.
    `includes_limit`: the longest list that includes() takes, for unreleased snapshots; None: no limit.
    """

    stored: bool = True
    consumable: bool = True
    list_types: bool = True
    includes_limit: int | None = None
    version: str = attrs.field(default=LATEST, validator=attrs.validators.in_(VERSIONS))

    @classmethod
    def of(cls, version: str, *, stored: bool = True, consumable: bool = True, list_types: bool = True) -> Environment:
        """The environment of a version. includes() came in 1.36, where it takes no longer lists than attributes may be."""
        return cls(stored, consumable, list_types, MAX_LIST if version == "1.36" else None, version)

    @property
    def _lists(self) -> bool:
        """Whether attributes can be lists."""
        return self.version >= "1.36" and (self.stored or self.list_types)

    @property
    def attribute_type(self) -> Type:
        return t.DYN if self._lists else t.ANY

    @property
    def fields(self) -> dict[str, Type]:
        """The fields of `device`."""
        found = {
            "driver": t.STRING,
            "attributes": t.map_of(t.STRING, t.map_of(t.STRING, self.attribute_type)),
            "capacity": t.map_of(t.STRING, t.map_of(t.STRING, t.QUANTITY)),
        }
        if self.stored or self.consumable:
            found["allowMultipleAllocations"] = t.BOOL
        return found

    def overloads(self, function: str) -> Sequence[Overload] | None:
        """None for a function that is not known."""
        if function == "includes" and not self._lists:
            return None
        if function in _LIST_EXTENSION and self.version == "1.34" and not self.stored:
            return None
        return functions().get(function)

    def size(self, path: Sequence[str]) -> int | None:
        """The largest size of what is found on a path from `device`, or None if nothing is known.

        Steps: field names, `@keys`, `@values`, `@items`. Sizes as in size(); 0 for a Quantity and for device itself, as upstream says.
        """
        if not path or path[0] != "device":
            return None
        level: Sequence[object] = ("object",)
        for step in path[1:]:
            level = self._step(level, step)
            if not level:
                return None
        size = level[-1] if len(level) > 1 else 0
        assert isinstance(size, int)
        return size

    def _step(self, level: Sequence[object], step: str) -> Sequence[object]:
        kind = level[0]
        if kind == "object":
            fields: dict[str, Sequence[object]] = {
                "driver": ("leaf", MAX_DRIVER),
                "attributes": ("domains", "attribute", MAX_ENTRIES),
                "capacity": ("domains", "capacity", MAX_ENTRIES),
                "allowMultipleAllocations": ("leaf", 1),
            }
            return fields.get(step, ())
        if kind == "domains":
            if step == "@keys":
                return ("leaf", MAX_DOMAIN)
            return ("ids", level[1], MAX_ENTRIES) if step in ("@values", "@items") else ()
        if kind == "ids":
            if step == "@keys":
                return ("leaf", MAX_ID)
            if level[1] == "attribute":  # any name: all attributes have the same largest size
                return ("leaf", MAX_VALUE)
            return ("leaf", 0) if step in ("@values", "@items") else ()
        return ()


STORED = Environment()
