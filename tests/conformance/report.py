"""What a comparison with recorded answers gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs


@attrs.frozen
class Disagreement:
    """`case`: its id, or the input; `expected` and `found`: the recorded answer and ours, short."""

    file: str
    case: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.file}: {self.case}: expected {self.expected}, found {self.found}"


@attrs.frozen
class Exception_:  # noqa: N801 - the plain name is Python's
    """A disagreement that is listed: why it is right to differ, and where that is said."""

    disagreement: Disagreement
    reason: str
    source: str


@attrs.frozen
class Report:
    """`total` counts cases (in sequences: steps) that were compared; a case with several recorded answers agrees if we agree with all of
    them. Listed exceptions do not count as agreed. `omitted`: reason -> number of cases that were not compared, which count nowhere else.
    `notes`: what else there is to say."""

    agreed: int
    total: int
    disagreements: list[Disagreement] = attrs.field(factory=list)
    exceptions: list[Exception_] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    omitted: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def remarks(self) -> list[str]:
        """The notes, and what was not compared."""
        listed = sorted(self.omitted.items(), key=lambda item: (-item[1], item[0]))
        return self.notes + ([f"not compared: {', '.join(f'{number} ({reason})' for reason, number in listed)}"] if listed else [])

    def __add__(self, other: Report) -> Report:
        return Report(
            self.agreed + other.agreed,
            self.total + other.total,
            self.disagreements + other.disagreements,
            self.exceptions + other.exceptions,
            self.notes + other.notes,
            Counter(self.omitted) + Counter(other.omitted),
        )


def sorted_out(
    agreed: int,
    total: int,
    found: list[Disagreement],
    listed: dict[str, tuple[str, str]],
    notes: list[str] | None = None,
    omitted: Mapping[str, int] | None = None,
) -> Report:
    """A report in which the cases in `listed` (id to reason and source) are exceptions."""
    exceptions = [Exception_(d, *listed[d.case]) for d in found if d.case in listed]
    return Report(agreed, total, [d for d in found if d.case not in listed], exceptions, notes or [], omitted or {})
