"""A rule given up, as it is offered to a user."""

from __future__ import annotations

import attrs

from dra_spec.resources.problems import Where


@attrs.frozen
class Change:
    """One rule given up. `kind` as in Reason; for extended resources: ask (a container asks for less), rename (by the name that DRA
    serves), running (another pod goes). `key` says of what; `amount`: devices fewer."""

    kind: str
    key: tuple[object, ...]
    text: str = attrs.field(eq=False)
    amount: int = 0
    where: Where = attrs.field(eq=False, default=Where())

    def __str__(self) -> str:
        return f"{self.text} ({self.where.place})" if self.where.place else self.text


Relaxation = tuple[Change, ...]
