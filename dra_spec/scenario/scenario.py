"""A scenario: a bounded model ready to be explored, with what is promised and expected of it; and the report of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dra_spec.explorer.model import Model
from dra_spec.explorer.result import Result
from dra_spec.properties.invariant import Invariant
from dra_spec.protocol.instance import Instance
from dra_spec.scenario.modelfile import ModelFile, Overrides


@attrs.frozen(eq=False)
class Scenario:
    """A model with its promises.

    `expected`: the verdict that is expected, None if nobody said; `expectations`: the same per promise; `assumptions`: named
    assumptions per promise that the model does not meet; `variants`: names of all that are applied; `notes`, `unsupported`: what the
    manifests ask for and the model does not encode; `warnings`: oddities that change no verdict.
    """

    name: str
    file: ModelFile
    overrides: Overrides
    instance: Instance
    model: Model
    invariants: Mapping[str, Invariant] = attrs.field(factory=dict)
    expected: str | None = None
    expectations: Mapping[str, str] = attrs.field(factory=dict)
    assumptions: Mapping[str, Sequence[str]] = attrs.field(factory=dict)
    variants: Sequence[str] = ()
    notes: Sequence[str] = ()
    unsupported: Sequence[str] = ()  # grows while the model is explored
    warnings: Sequence[str] = ()

    @property
    def not_encoded(self) -> list[str]:
        """All that the model does not encode; not empty: no verdict but undecided."""
        return [*self.notes, *self.unsupported]

    @property
    def any_allocation(self) -> bool:
        """Whether every feasible allocation is tried: more runs than upstream's allocator can bring about."""
        return self.instance.any_allocation is not None

    @property
    def bounds(self) -> str:
        """The bounds that belong to a verdict, in one line: lag, budgets, allocations, limits of depth."""
        parts = [f"lag {self.instance.lag}"]
        for name, count in sorted(self.instance.budgets.items()):
            if count:
                parts.append(f"{name} {count if count > 0 else 'any number'}")
        if self.any_allocation:
            parts.append(f"allocation any (at most {self.file.bound('allocations')} per call)")
        if self.file.limits.depth:
            parts.append(f"depth {self.file.limits.depth}")
        return ", ".join(parts)


@attrs.frozen(eq=False)
class Report:
    """What a search of a scenario found. `verdict` is that of the search, turned to undecided by what is not encoded.

    `spurious`: promises whose trace belongs to an over-approximation and does not replay, each with the reason: they are undecided.
    """

    scenario: Scenario
    result: Result
    spurious: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def verdict(self) -> str:
        """A violation stands even if something is not encoded only when nothing is left out; else all is undecided."""
        if self.scenario.not_encoded:
            return "undecided"
        if not self.spurious:
            return self.result.verdict
        return "violated" if "violated" in dict(self.invariants()).values() else "undecided"

    @property
    def interrupted(self) -> bool:
        return self.result.stopped == "interrupted"

    def invariants(self) -> list[tuple[str, str]]:
        """Name and verdict of each promise, in the order of the model."""
        undecided = {p.promise for p in self.result.properties if self.scenario.not_encoded or p.promise in self.spurious}
        return [(p.promise, "undecided" if p.promise in undecided else p.verdict) for p in self.result.properties]

    @property
    def surprises(self) -> list[str]:
        """How the verdicts differ from what is expected, a sentence each; empty if all is as expected or nothing was."""
        found = []
        expected = self.scenario.expected
        if expected is not None and self.verdict != expected:
            found.append(f"expected {expected}, found {self.verdict}")
        for name, verdict in self.invariants():
            wanted = self.scenario.expectations.get(name)
            if wanted is not None and verdict != wanted:
                found.append(f"{name}: expected {wanted}, found {verdict}")
            elif wanted is None and self.scenario.expectations and verdict == "violated":
                found.append(f"{name}: violated, and nobody expected that")
        return found

    @property
    def as_expected(self) -> bool:
        return self.scenario.expected is not None and not self.surprises
