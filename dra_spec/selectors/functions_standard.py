"""Standard functions by overload: arithmetic, conversions, time, sizes. Source: CEL language definition, List of Standard Definitions."""

from __future__ import annotations

import datetime
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from dra_spec.selectors.parser import Unsigned
from dra_spec.selectors.runtime import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    Fault,
    Timestamp,
    TypeValue,
    type_name,
)

Function = Callable[..., Any]
FUNCTIONS: dict[str, Function] = {}
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_FIRST, _LAST = -62135596800 * 10**9, 253402300799 * 10**9 + 999_999_999  # years 1 to 9999
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_FALSE = ("0", "f", "F", "false", "FALSE", "False")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity)|nan", re.ASCII | re.IGNORECASE)


def overflow(what: str = "integer") -> Fault:
    return Fault("overflow", f"{what} overflow")


def to_int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise overflow()
    return int(value)


def to_uint(value: int) -> Unsigned:
    if not 0 <= value <= UINT_MAX:
        raise overflow("unsigned integer")
    return Unsigned(int(value))


def to_duration(nanos: int) -> Duration:
    if not INT_MIN <= nanos <= INT_MAX:
        raise overflow("duration")
    return Duration(nanos)


def to_timestamp(nanos: int) -> Timestamp:
    if not _FIRST <= nanos <= _LAST:
        raise overflow("timestamp")
    return Timestamp(nanos)


def _divide(kind: str, wrap: Function) -> Function:
    def divide(a: int, b: int) -> int:
        if b == 0:
            raise Fault("division-by-zero" if kind == "/" else "modulus-by-zero", f"{a} {kind} 0")
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # towards zero
        wrap(quotient)  # of the least integer and -1 it is too large, also where only the rest is asked for
        return quotient if kind == "/" else a - b * quotient

    return divide


def _float_divide(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def _wrapped(function: Function, wrap: Function) -> Function:
    return lambda *args: wrap(function(*(int(a) for a in args)))


for _verb, _function in (("add", operator.add), ("subtract", operator.sub), ("multiply", operator.mul)):
    FUNCTIONS[f"{_verb}_int64"] = _wrapped(_function, to_int)
    FUNCTIONS[f"{_verb}_uint64"] = _wrapped(_function, to_uint)
    FUNCTIONS[f"{_verb}_double"] = _function
for _verb, _kind in (("divide", "/"), ("modulo", "%")):
    FUNCTIONS[f"{_verb}_int64"] = _wrapped(_divide(_kind, to_int), to_int)
    FUNCTIONS[f"{_verb}_uint64"] = _wrapped(_divide(_kind, to_uint), to_uint)


def conversion_error(value: object, target: str) -> Fault:
    return Fault("type-conversion", f"{value!r} cannot be turned into {target}")


def _string_to_number(text: str, target: str) -> int:
    pattern = r"[+-]?\d+" if target == "int" else r"\d+"
    if not re.fullmatch(pattern, text, re.ASCII):
        raise conversion_error(text, target)
    number = int(text)
    if not (INT_MIN <= number <= INT_MAX if target == "int" else number <= UINT_MAX):
        raise conversion_error(text, target)
    return number if target == "int" else Unsigned(number)


def _string_to_double(text: str) -> float:
    if re.fullmatch(r"[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+", text):
        return float.fromhex(text)
    if not _NUMBER.fullmatch(text):
        raise conversion_error(text, "double")
    value = float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise conversion_error(text, "double")
    return value


def _string_to_bool(text: str) -> bool:
    if text not in _TRUE + _FALSE:
        raise conversion_error(text, "bool")
    return text in _TRUE


def _double_to_int(value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise overflow()
    return int(value)


def _double_to_uint(value: float) -> Unsigned:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise overflow("unsigned integer")
    return Unsigned(int(value))


def double_text(value: float) -> str:
    """As Go prints a double with format g and the shortest digits."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return f"{sign}0"
    if point - 1 < -4 or point - 1 >= 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits.ljust(point, '0')[:point]}" + (f".{digits[point:]}" if len(digits) > point else "")


def parse_duration(text: str) -> Duration:
    """`1h30m`, `-1.5s`. Raises Fault."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while match := _DURATION.match(rest, at):
        whole, _, fraction = match.group(1).partition(".")
        unit = _UNITS[match.group(2)]
        total += int(whole or "0") * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)
        at = match.end()
    if at != len(rest) or not rest or total > INT_MAX:
        raise conversion_error(text, "duration")
    return Duration(sign * total)


def duration_text(value: Duration) -> str:
    whole, rest = divmod(abs(value.nanos), 10**9)
    fraction = f".{rest:09d}".rstrip("0").rstrip(".") if rest else ""
    return f"{'-' if value.nanos < 0 else ''}{whole}{fraction}s"


def parse_timestamp(text: str) -> Timestamp:
    """RFC 3339. Raises Fault."""
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        raise conversion_error(text, "timestamp")
    try:
        moment = datetime.datetime(*(int(g) for g in match.groups()[:6]))  # type: ignore[arg-type]
    except ValueError:
        raise conversion_error(text, "timestamp") from None
    zone = match.group(8)
    offset = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:6])) * (-60 if zone[0] == "-" else 60)
    nanos = int((match.group(7) or "").ljust(9, "0")[:9] or 0)
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1) - offset
    return Timestamp(to_timestamp(seconds * 10**9 + nanos).nanos, offset)


def timestamp_text(value: Timestamp) -> str:
    seconds, rest = divmod(value.nanos, 10**9)
    moment = _EPOCH + datetime.timedelta(seconds=seconds + value.offset)
    minutes = abs(value.offset) // 60
    zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if value.offset else "Z"
    return moment.strftime("%Y").zfill(4) + moment.strftime("-%m-%dT%H:%M:%S") + (f".{rest:09d}".rstrip("0") if rest else "") + zone


def _local(value: Timestamp, zone: str) -> datetime.datetime:
    utc = (_EPOCH + datetime.timedelta(seconds=value.nanos // 10**9)).replace(tzinfo=datetime.UTC)
    if match := re.fullmatch(r"([+-]?)(\d\d):(\d\d)", zone, re.ASCII):
        minutes = int(match.group(2)) * 60 + int(match.group(3))
        offset = datetime.timedelta(minutes=-minutes if match.group(1) == "-" else minutes)
        return utc + offset
    import zoneinfo  # which looks around on the disk when it is loaded

    try:
        return utc.astimezone(zoneinfo.ZoneInfo(zone or "UTC"))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise Fault("invalid-argument", f"unknown time zone {zone}") from None


_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "year": lambda m: m.year,
    "month": lambda m: m.month - 1,
    "day_of_year": lambda m: m.timetuple().tm_yday - 1,
    "day_of_month": lambda m: m.day - 1,
    "day_of_month_1_based": lambda m: m.day,
    "day_of_week": lambda m: m.isoweekday() % 7,
    "hours": lambda m: m.hour,
    "minutes": lambda m: m.minute,
    "seconds": lambda m: m.second,
}


def _part(read: Callable[[datetime.datetime], int]) -> Function:
    return lambda value, zone="UTC": read(_local(value, zone))


for _name, _read in _PARTS.items():
    FUNCTIONS[f"timestamp_to_{_name}"] = FUNCTIONS[f"timestamp_to_{_name}_with_tz"] = _part(_read)
FUNCTIONS["timestamp_to_milliseconds"] = FUNCTIONS["timestamp_to_milliseconds_with_tz"] = lambda value, zone="UTC": (
    _local(value, zone),
    value.nanos % 10**9 // 10**6,
)[1]
for _name, _unit in (("hours", 3600 * 10**9), ("minutes", 60 * 10**9), ("seconds", 10**9), ("milliseconds", 10**6)):
    FUNCTIONS[f"duration_to_{_name}"] = lambda value, unit=_unit: int(math.copysign(abs(value.nanos) // unit, value.nanos))


def _same(value: Any) -> Any:
    return value


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Fault("type-conversion", "the bytes are not UTF-8") from None


for _pair in ("bool_to_bool", "bytes_to_bytes", "double_to_double", "duration_to_duration", "int64_to_int64", "string_to_string"):
    FUNCTIONS[_pair] = _same
FUNCTIONS.update(
    {
        "timestamp_to_timestamp": _same,
        "uint64_to_uint64": _same,
        "to_dyn": _same,
        "type": lambda value: TypeValue(type_name(value)),
        "logical_not": operator.not_,
        "negate_int64": lambda value: to_int(-value),
        "negate_double": operator.neg,
        "divide_double": _float_divide,
        "add_string": operator.add,
        "add_bytes": operator.add,
        "add_list": operator.add,
        "add_duration_duration": lambda a, b: to_duration(a.nanos + b.nanos),
        "add_duration_timestamp": lambda a, b: to_timestamp(a.nanos + b.nanos),
        "add_timestamp_duration": lambda a, b: to_timestamp(a.nanos + b.nanos),
        "subtract_duration_duration": lambda a, b: to_duration(a.nanos - b.nanos),
        "subtract_timestamp_duration": lambda a, b: to_timestamp(a.nanos - b.nanos),
        "subtract_timestamp_timestamp": lambda a, b: to_duration(a.nanos - b.nanos),
        "string_to_bool": _string_to_bool,
        "string_to_bytes": str.encode,
        "int64_to_double": float,
        "uint64_to_double": float,
        "string_to_double": _string_to_double,
        "string_to_duration": parse_duration,
        "double_to_int64": _double_to_int,
        "duration_to_int64": lambda value: value.nanos,
        "string_to_int64": lambda text: _string_to_number(text, "int"),
        "timestamp_to_int64": lambda value: value.nanos // 10**9,
        "uint64_to_int64": to_int,
        "bool_to_string": lambda value: "true" if value else "false",
        "bytes_to_string": _bytes_to_string,
        "double_to_string": double_text,
        "duration_to_string": duration_text,
        "int64_to_string": str,
        "timestamp_to_string": timestamp_text,
        "uint64_to_string": lambda value: str(int(value)),
        "int64_to_timestamp": lambda value: to_timestamp(value * 10**9),
        "string_to_timestamp": parse_timestamp,
        "double_to_uint64": _double_to_uint,
        "int64_to_uint64": to_uint,
        "string_to_uint64": lambda text: _string_to_number(text, "uint"),
    }
)
for _kind in ("string", "bytes", "list", "map"):
    FUNCTIONS[f"size_{_kind}"] = FUNCTIONS[f"{_kind}_size"] = len
