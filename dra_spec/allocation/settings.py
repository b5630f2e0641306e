"""Which Kubernetes the allocator is: version, features, variant of the code, known defects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet

import attrs

from dra_spec.allocation.gates import DEFAULT_FEATURES, DEFAULT_VERSION, features_of, gates_of, variant_for
from dra_spec.allocation.inventory import Pool
from dra_spec.allocation.rules import Rules
from dra_spec.allocation.variants import BY_VERSION, rules_with
from dra_spec.selectors import Environment


def _as_they_are(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    return pools


@attrs.frozen
class Settings:
    """`variant`: stable, incubating or experimental, as upstream calls its copies of the code.

    `as_written`: claims come without the API server's defaults, so a missing count means 0.
    `pool_order`: an order to try the pools in. The stable copy tries them in any (Go's map order), so each is a possible answer of it.
    `undecided`: what the caller cannot take an answer about is UnsupportedFeature: shared devices (if the state is a set of names), and
    fields whose gate is off, which an API server would have dropped.
    `extended_resources`: whether device classes serve extended resources (DRAExtendedResource).
    """

    version: str = DEFAULT_VERSION
    features: AbstractSet[str] = DEFAULT_FEATURES
    variant: str = "incubating"
    rules: Rules = attrs.Factory(Rules)
    as_written: bool = False
    pool_order: Callable[[tuple[Pool, ...]], tuple[Pool, ...]] = _as_they_are
    undecided: bool = False
    extended_resources: bool = True

    @classmethod
    def of(cls, version: str = DEFAULT_VERSION, gates: Mapping[str, bool] | None = None, defects: Iterable[str] | None = None) -> Settings:
        """A Kubernetes release with feature gates. `defects`: allocator variants (see variants.py); None: those of the release.

        Raises ValueError for an unknown version, gate or defect, and if no allocator of the release supports the features together.
        """
        given = gates_of(version, gates)
        features = features_of(given)
        rules = rules_with(BY_VERSION[version] if defects is None else defects)
        return cls(version, features, variant_for(version, features), rules, extended_resources=given["DRAExtendedResource"])

    @classmethod
    def with_features(cls, version: str, features: AbstractSet[str]) -> Settings:
        """A release with just these allocator features, and its known defects. Raises ValueError as `of` does."""
        return cls(version, frozenset(features), variant_for(version, features), rules_with(BY_VERSION[version]))

    @property
    def environment(self) -> Environment:
        """How the scheduler compiles selectors."""
        return Environment.of(self.version)

    @property
    def admission(self) -> Environment:
        """How the API server compiles the selectors of new objects."""
        return Environment.of(
            self.version, stored=False, consumable=self.has("ConsumableCapacity"), list_types=self.has("ListTypeAttributes")
        )

    def has(self, feature: str) -> bool:
        """Whether the allocator's feature is on."""
        return feature in self.features

    @property
    def stable(self) -> bool:
        """The oldest copy of the code knows no sharing, no distinctAttribute and no binding to nodes."""
        return self.variant == "stable"

    @property
    def shares(self) -> bool:
        """Whether devices can be shared."""
        return self.has("ConsumableCapacity") and not self.stable


# for models of the protocol, which knows whole devices only
FOR_PROTOCOL = Settings(undecided=True)
