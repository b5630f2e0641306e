"""Quantities of the Kubernetes API, exact: no floats anywhere. Source: apimachinery pkg/api/resource (notation), CEL quantity library."""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction

import attrs

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_PATTERN = re.compile(r"([+-]?)(\d*(?:\.\d*)?)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE][+-]?\d+)", re.ASCII)
_SHAPE = re.compile(r"[+-]?\d*(?:\.\d*)?[eEinumkKMGTP]*[+-]?\d*", re.ASCII)
_NANO = Fraction(1, 10**9)
_BINARY_MAX = Fraction(2**63 - 1)  # upstream caps what is written with a binary suffix, and only that
MAX_TEXT = 64
MAX_EXPONENT = 99


# the longest number that upstream reads into an int64, and the same before the exponent of a binary suffix is taken off
_SMALL_DIGITS, _SMALL_BINARY = 18, 14


class QuantityError(ValueError):
    """A text that is not a quantity. The message says what was expected. `kind`: "suffix" if only the suffix is unknown, else "format"."""

    def __init__(self, message: str, kind: str = "format") -> None:
        super().__init__(message)
        self.kind = kind


@functools.total_ordering
@attrs.frozen(eq=False, repr=False)
class Quantity:
    """An exact number with the notation that it was written in. Equality, order and hash are numeric: `1Gi == 1024Mi`.

    `style`: "binary", "decimal" or "exponent", used for printing only. `text`: as it was written, "" for a computed quantity.
    `form`: how upstream holds the number, (unscaled, power of ten, whether as an int64); what CEL says of integers and floats depends on
    it. Without it: the natural form of the value.
    """

    value: Fraction
    style: str = "decimal"
    text: str = ""
    form: tuple[int, int, bool] | None = None

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity such as `10Gi`, `100m`, `1e3` or `-.5`. Amounts below 10^-9 are rounded away from zero, as upstream does;
        like upstream it takes a lone sign, point or suffix for zero.

        Raises QuantityError.
        """
        match = _PATTERN.fullmatch(text) if 0 < len(text) <= MAX_TEXT else None
        if not match:
            raise QuantityError(
                f"{text[:MAX_TEXT]!r} is not a quantity: expected a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei",
                "suffix" if text and _SHAPE.fullmatch(text) else "format",
            )
        sign, digits, suffix = match.groups()
        if suffix in _BINARY:
            scale, style, power = Fraction(1024 ** _BINARY[suffix]), "binary", 0
        elif suffix in _DECIMAL:
            scale, style, power = Fraction(10) ** _DECIMAL[suffix], "decimal", _DECIMAL[suffix]
        else:
            if abs(int(suffix[1:])) > MAX_EXPONENT:
                raise QuantityError(f"{text!r} is not a usable quantity: the exponent is beyond {MAX_EXPONENT}")
            scale, style, power = Fraction(10) ** int(suffix[1:]), "exponent", int(suffix[1:])
        whole, _, fraction = digits.partition(".")
        number = Fraction(int(whole + fraction or "0"), 10 ** len(fraction)) * scale
        nanos = -(-number // _NANO)  # rounded up; the sign follows, so this is away from zero
        number = nanos * _NANO
        capped = style == "binary" and number > _BINARY_MAX
        if capped:
            number = _BINARY_MAX
        if sign == "-":
            number = -number
        if style == "binary":
            small = not fraction and _fits_binary(whole, _BINARY[suffix])
        else:
            small = len(whole.lstrip("0") or "0") + len(fraction) <= _SMALL_DIGITS and power - len(fraction) >= -9
        form = _small_form(number, power - len(fraction)) if small else (int(number), 0, False) if capped else _large_form(number)
        return cls(number, style, text, form)

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
        style = self.style if self.value else other.style
        return Quantity(self.value + other.value, style, form=_add_forms(self._form, other._form))

    def __sub__(self, other: Quantity) -> Quantity:
        return self + Quantity(-other.value, other.style, form=(-other._form[0], *other._form[1:]))

    @property
    def _form(self) -> tuple[int, int, bool]:
        if self.form is not None:
            return self.form
        if self.value.denominator == 1 and _is_int64(self.value.numerator):
            return (self.value.numerator, 0, True)
        return _large_form(self.value)

    def as_int64(self) -> int | None:
        """The number if upstream can give it as an int64: it must be whole, and be held in the short form without a fraction part
        (`1.0`, `1000m` and `1Ei` are not). Source: resource.Quantity AsInt64."""
        unscaled, power, short = self._form
        if not short or power < 0 or not _is_int64(unscaled * 10**power):
            return None
        return int(unscaled * 10**power)

    def approximate_float(self) -> float:
        """The nearest double, up to the rounding of upstream's single multiplication. Source: AsApproximateFloat64."""
        unscaled, power, _ = self._form
        return float(unscaled) * float(f"1e{power}") if power else float(unscaled)

    @property
    def is_integer(self) -> bool:
        return self.value.denominator == 1

    @property
    def rounded(self) -> int:
        """The integer next to it, away from zero (upstream's Value)."""
        return math.ceil(self.value) if self.value >= 0 else math.floor(self.value)

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


def _is_int64(number: int) -> bool:
    return -(2**63) <= number < 2**63


def _fits_binary(whole: str, power: int) -> bool:
    """Whether upstream reads a whole number with a binary suffix into an int64: an estimate by digits, not by value."""
    digits = whole.lstrip("0") or "0"
    return len(digits) <= _SMALL_BINARY - 3 * power


def _small_form(number: Fraction, power: int) -> tuple[int, int, bool]:
    return (int(number / Fraction(10) ** power), power, True)


def _large_form(number: Fraction) -> tuple[int, int, bool]:
    return (int(number / _NANO), -9, False)


def _add_forms(a: tuple[int, int, bool], b: tuple[int, int, bool]) -> tuple[int, int, bool]:
    """Sum as upstream holds it: in an int64 as long as all steps fit."""
    if a[2] and b[2] and not (a[0] and b[0]):
        return a if a[0] or not b[0] else b
    power = min(a[1], b[1])
    left, right = a[0] * 10 ** (a[1] - power), b[0] * 10 ** (b[1] - power)
    return (left + right, power, a[2] and b[2] and all(_is_int64(n) for n in (left, right, left + right)))
