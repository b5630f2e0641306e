"""Variables of an evaluation, scope by scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dra_spec.selectors.charges import Meter
from dra_spec.selectors.runtime import Fault

Closure = Callable[["Frame"], Any]


class Lazy:
    """The start of a macro's accumulator: evaluated when it is needed first, in the frame around the macro."""

    __slots__ = ("closure", "frame")

    def __init__(self, closure: Closure, frame: Frame) -> None:
        self.closure, self.frame = closure, frame


class Growing(list[Any]):
    """The list that map() and filter() build. Nothing else can see it, so it grows in place."""

    __slots__ = ()


class Frame:
    """Variables of one scope. Values may be a Lazy, or a Fault that is raised when the variable is read."""

    __slots__ = ("meter", "names", "parent")

    def __init__(self, names: dict[str, Any], meter: Meter, parent: Frame | None = None) -> None:
        self.names, self.meter, self.parent = names, meter, parent

    def read(self, name: str) -> Any:
        frame: Frame | None = self
        while frame is not None and name not in frame.names:
            frame = frame.parent
        if frame is None:
            raise Fault("no-such-key", f"no such attribute: {name}")
        value = frame.names[name]
        if isinstance(value, Lazy):
            value = frame.names[name] = attempt(value.closure, value.frame)
        if isinstance(value, Fault):
            raise value
        return value


def attempt(closure: Closure, frame: Frame) -> Any:
    """The value, or the fault as a value."""
    try:
        return closure(frame)
    except Fault as fault:
        return fault
