"""Quantities of the Kubernetes API, exact: no floats anywhere. Source: apimachinery pkg/api/resource (notation), CEL quantity library."""

from __future__ import annotations

import functools
import re
from fractions import Fraction

import attrs

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(r"([+-]?)(\d*(?:\.\d*)?)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?\d+)", re.ASCII)
_NANO = Fraction(1, 10**9)
_BINARY_MAX = Fraction(2**63 - 1)  # upstream caps what is written with a binary suffix, and only that
MAX_TEXT = 64
MAX_EXPONENT = 99


class QuantityError(ValueError):
    """A text that is not a quantity. The message says what was expected."""


@functools.total_ordering
@attrs.frozen(eq=False, repr=False)
class Quantity:
    """An exact number with the notation that it was written in. Equality, order and hash are numeric: `1Gi == 1024Mi`.

    `style`: "binary", "decimal" or "exponent", used for printing only.
    """

    value: Fraction
    style: str = "decimal"

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity such as `10Gi`, `100m`, `1e3` or `-.5`. Amounts below 10^-9 are rounded away from zero, as upstream does;
        like upstream it takes a lone sign, point or suffix for zero.

        Raises QuantityError.
        """
        match = _PATTERN.fullmatch(text) if 0 < len(text) <= MAX_TEXT else None
        if not match:
            raise QuantityError(
                f"{text[:MAX_TEXT]!r} is not a quantity: expected a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei"
            )
        sign, digits, suffix = match.groups()
        if suffix in _BINARY:
            scale, style = Fraction(1024 ** _BINARY[suffix]), "binary"
        elif suffix in _DECIMAL:
            scale, style = Fraction(10) ** _DECIMAL[suffix], "decimal"
        else:
            if abs(int(suffix[1:])) > MAX_EXPONENT:
                raise QuantityError(f"{text!r} is not a usable quantity: the exponent is beyond {MAX_EXPONENT}")
            scale, style = Fraction(10) ** int(suffix[1:]), "exponent"
        whole, _, fraction = digits.partition(".")
        number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * scale
        nanos = -(-number // _NANO)  # rounded up; the sign follows, so this is away from zero
        number = nanos * _NANO
        if style == "binary":
            number = min(number, _BINARY_MAX)
        return cls(-number if sign == "-" else number, style)

    @classmethod
    def of(cls, number: int | Fraction, style: str = "decimal") -> Quantity:
        return cls(Fraction(number), style)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.value == other.value

    def __lt__(self, other: Quantity) -> bool:
        return self.value < other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.value + other.value, self.style if self.value else other.style)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.value - other.value, self.style if self.value else other.style)

    @property
    def is_integer(self) -> bool:
        return self.value.denominator == 1

    def __str__(self) -> str:
        """The canonical notation: no fraction, the largest suffix that keeps the number whole; parsing it gives an equal quantity."""
        sign, number = ("-", -self.value) if self.value < 0 else ("", self.value)
        if self.style == "binary" and number.denominator == 1 and number >= 1024:
            power = max((p for p in range(7) if number.numerator % 1024**p == 0), default=0)
            return f"{sign}{number.numerator // 1024**power}{next((s for s, p in _BINARY.items() if p == power), '')}"
        power = -9
        while power < 18 and number and (number / Fraction(10) ** (power + 3)).denominator == 1:
            power += 3
        if number == 0:
            power = 0
        whole = (number / Fraction(10) ** power).numerator
        if self.style == "exponent":
            return f"{sign}{whole}e{power}" if power else f"{sign}{whole}"
        return f"{sign}{whole}{next(s for s, p in _DECIMAL.items() if p == power)}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"
