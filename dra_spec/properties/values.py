"""Lazy values: what an expression reads. A world gives objects whose fields are looked up one by one, and lists that can be asked for
an element by name or for membership without being read as a whole.

Plain values are bool, int, str, None, lists or tuples of values, and dicts (maps).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any


class Thing(ABC):
    """An object of the world."""

    @abstractmethod
    def get(self, field: str) -> Any:
        """The value of a field; raises `NotInWorld` if this world lacks it."""


class Items(ABC):
    """A list of the world. Elements that have a name can be looked up by it."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """The elements that exist, in order."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __contains__(self, item: object) -> bool: ...

    def universe(self) -> Sequence[str] | None:
        """All names that an element can ever have, fixed; None if that is not known or elements have no name."""
        return None

    def at(self, name: str) -> Any | None:
        """The element of that name, None if it does not exist. Only for names of the universe."""
        raise NotImplementedError

    def peek(self, name: str) -> Any:
        """The element of that name without a look at whether it exists. Only for names of the universe."""
        raise NotImplementedError
