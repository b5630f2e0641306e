"""Semantic Versioning 2.0.0: the type of version attributes. Precedence ignores build metadata."""

from __future__ import annotations

import functools
import re

import attrs

_IDENT = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_PATTERN = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_IDENT}(?:\.{_IDENT})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII
)
MAX_TEXT = 64


@functools.total_ordering
@attrs.frozen(eq=False)
class SemVer:
    """A version. Equality and order are by precedence, so build metadata does not count."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: str = ""

    @classmethod
    def parse(cls, text: str) -> SemVer:
        """Read `1.2.3-rc.1+build`. Raises ValueError with what was expected."""
        match = _PATTERN.fullmatch(text)
        if not match:
            raise ValueError(f"{text[:MAX_TEXT]!r} is not a semantic version: expected MAJOR.MINOR.PATCH, for example '1.2.0'")
        major, minor, patch, pre, build = match.groups()
        numbers = (int(major), int(minor), int(patch))
        if max(*numbers, *(int(p) for p in (pre or "").split(".") if p.isdigit())) >= 2**64:
            raise ValueError(f"{text[:MAX_TEXT]!r} is not a usable version: its numbers must fit in 64 bits")
        return cls(*numbers, tuple(pre.split(".")) if pre else (), build or "")

    @classmethod
    def parse_normalized(cls, text: str) -> SemVer:
        """Read also `v1`, `1.2` and `01.02.03`: one leading v and leading zeros go, missing numbers are 0. Raises ValueError.

        Source: k8s.io/apiserver pkg/cel/library, semver with normalisation.
        """
        parts = text.removeprefix("v").split(".", 2)
        if len(parts) < 3 and any(sign in parts[-1] for sign in "+-"):
            raise ValueError(f"{text[:MAX_TEXT]!r} is not a semantic version: a short one must not carry a pre-release or build part")
        for index, part in enumerate(parts):
            if len(part) > 1:
                rest = part.lstrip("0")
                parts[index] = rest if rest[:1] in tuple("0123456789") else "0" + rest
        return cls.parse(".".join([*parts, "0", "0"][:3]))

    def _key(self) -> tuple[object, ...]:
        # numeric identifiers sort below alphanumeric ones; a release sorts above its pre-releases
        pre = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre)
        return (self.major, self.minor, self.patch, not self.pre, pre)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemVer) and self._key() == other._key()

    def __lt__(self, other: SemVer) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return (
            f"{self.major}.{self.minor}.{self.patch}"
            + (f"-{'.'.join(self.pre)}" if self.pre else "")
            + (f"+{self.build}" if self.build else "")
        )
