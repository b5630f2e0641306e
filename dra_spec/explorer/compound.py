"""Parts of compound values that a run does not look at: they stand for any value that the part can have.

A queue of objects, or a pair of them, has as many values as its parts have together, far too many to list. So its values are kept with
each object in them taken out (a *skeleton*, known_values.py), and the values of the parts apart. A run of a function meets a *hole* in
place of such a part. To copy a hole costs nothing; whoever looks at it (a field, a comparison, a call) makes the run choose, as it does
for a slot (completion.py). So the run sees just as much of the part as the function asks for.

What cannot be intercepted is `x is y` and `type(x)`. So `None`, enums, texts and truth values are never taken out, and an action must
not ask whether two objects are one, nor for `type` (`isinstance` is fine): values are equal or not, they have no identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import attrs


class Unseen(BaseException):
    """A hole or a version was looked at where there is no run that could choose."""


class Unfit(Exception):
    """A value out of which something cannot be taken without losing what it says."""


class Chooser(Protocol):
    """What holes and versions need of a run."""

    def into(self, part: int, place: Hashable, name: str, fn: Callable[..., Any] | None) -> Any:
        """What is seen of a value of a part: a field (".name"), a function of it, or all of it ("")."""

    def compare(self, question: Hashable, of: str | None) -> bool:
        """How two versions of the object `of` compare; two numbers, or a version and a number, where that is None."""

    def moved(self, of: str) -> None:
        """An object gets a new version."""

    def tests(self, place: Hashable) -> Sequence[Any]:
        """What was seen of a hole up to now."""


class Unknown:
    """Something of a value that is not told."""

    __slots__ = ()


@attrs.frozen
class Some(Unknown):
    """In a skeleton: any value of a part (a number in known_values.py)."""

    part: int


@attrs.frozen
class Counted(Unknown):
    """In a skeleton: any whole number."""


class Hole(Unknown):
    """In a run: any value of a part. `place` tells the holes of one run apart; `run` None: nobody may look."""

    __slots__ = ("__part", "__place", "__run")

    def __init__(self, part: int, place: Hashable, run: Chooser | None) -> None:
        self.__part, self.__place, self.__run = part, place, run

    def _hole_of(self) -> tuple[int, Hashable]:
        return self.__part, self.__place

    def _hole_tests(self) -> Sequence[Any]:
        return () if self.__run is None else self.__run.tests(self.__place)

    def _hole_see(self, name: str = "", fn: Callable[..., Any] | None = None) -> Any:
        if self.__run is None:
            raise Unseen
        return self.__run.into(self.__part, self.__place, name, fn)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self._hole_see("class", _class)

    def __getattr__(self, name: str) -> Any:
        return self._hole_see("." + name)

    def __bool__(self) -> bool:
        return bool(self._hole_see("truth", bool))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not is_unknown(other) and attrs.has(type(other)):  # it looks at one field after the other, as far as they are equal
            answer = type(other).__eq__(other, self)
            if answer is not NotImplemented:
                return bool(answer)
        return bool(self._hole_see() == other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: Any) -> Any:
        return self._hole_see() < other

    def __le__(self, other: Any) -> Any:
        return self._hole_see() <= other

    def __gt__(self, other: Any) -> Any:
        return self._hole_see() > other

    def __ge__(self, other: Any) -> Any:
        return self._hole_see() >= other

    def __hash__(self) -> int:
        return hash(self._hole_see())

    def __iter__(self) -> Any:
        return iter(self._hole_see())

    def __len__(self) -> int:
        return len(self._hole_see())

    def __contains__(self, item: object) -> bool:
        return item in self._hole_see()

    def __getitem__(self, at: Any) -> Any:
        return self._hole_see()[at]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._hole_see()(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self._hole_see())

    def __str__(self) -> str:
        return str(self._hole_see())

    def __format__(self, how: str) -> str:
        return format(self._hole_see(), how)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._hole_see().__reduce_ex__(protocol)


def _class(value: Any) -> Any:
    return value.__class__


def part_of(hole: Hole) -> tuple[int, Hashable]:
    """The part whose values a hole stands for, and its place in the run."""
    return hole._hole_of()


def filled(hole: Hole) -> Any:
    """The value that the run chooses for a hole; there may be holes in it."""
    return hole._hole_see()


class Number(Unknown):
    """In a run: any whole number. How it compares is chosen; what is counted up or down from it is any number again."""

    __slots__ = ("__place", "__run")

    def __init__(self, place: Hashable, run: Chooser | None) -> None:
        self.__place, self.__run = place, run

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return int

    def _number_asks(self, how: str, other: object) -> bool:
        if self.__run is None:
            raise Unseen
        than = ("another", other.__place) if type(other) is Number else (type(other), other)
        return self.__run.compare((how, repr(self.__place), repr(than)), None)

    def __eq__(self, other: object) -> bool:
        return self is other or self._number_asks("=", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return self._number_asks("<", other)

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __le__(self, other: object) -> bool:
        return self._number_asks("<=", other)

    def __bool__(self) -> bool:
        return not self._number_asks("=", 0)

    def __add__(self, other: object) -> Number:
        return Number(("+", self.__place, repr(other)), self.__run)

    __radd__ = __add__

    def __sub__(self, other: object) -> Number:
        return Number(("-", self.__place, repr(other)), self.__run)

    def __hash__(self) -> int:
        raise Unfit("it counts without end")

    def __repr__(self) -> str:
        if self.__run is None:
            raise Unseen
        raise Unfit("it counts without end")


def is_unknown(thing: object) -> bool:
    """Whether a thing is a hole, or another thing that stands for many; asks no hole for its class."""
    return issubclass(type(thing), Unknown)
