"""Functions on texts by overload: cel-go strings extension v2, Kubernetes' regular expressions.

Offsets count characters. Regular expressions are RE2's.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import re2  # type: ignore[import-untyped, unused-ignore]

from dra_spec.selectors.functions_standard import FUNCTIONS, double_text, duration_text, timestamp_text
from dra_spec.selectors.parser import Unsigned
from dra_spec.selectors.runtime import Duration, Fault, Map, Timestamp, TypeValue, is_number, no_overload, show, type_name

_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_ASCII_UP = {c: c - 32 for c in range(ord("a"), ord("z") + 1)}
_ASCII_DOWN = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}
_CLAUSE = re.compile(r"%(?:%|(?:\.(\d+))?(.))", re.ASCII | re.DOTALL)
_QUOTED = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 92: "\\\\", 34: '\\"'}


class BadRegex(Exception):
    """A pattern that RE2 refuses."""


@functools.lru_cache(maxsize=512)
def compile_regex(pattern: str) -> Any:
    """Raises BadRegex."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise BadRegex(str(error)) from None


def _regex(pattern: str) -> Any:
    try:
        return compile_regex(pattern)
    except BadRegex as error:
        raise Fault("bad-regex", f"{pattern!r} is no regular expression: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _regex(pattern).search(text)
    return found.group() if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    regex, at, last_end = _regex(pattern), 0, -1
    found: list[str] = []
    while at <= len(text) and (limit < 0 or len(found) < limit):
        match = regex.search(text, at)
        if not match:
            break
        start, end = match.span()
        if end > start or start != last_end:  # an empty match right behind a match does not count
            found.append(match.group())
        last_end = end
        at = end if end > start else end + 1
    return found


def _out_of_range(index: int) -> Fault:
    return Fault("index-out-of-bounds", f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _out_of_range(offset)
    return text.find(part, offset) if part else min(offset, len(text))


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        raise _out_of_range(offset)
    if not part:
        return min(offset, len(text))
    return text.rfind(part, 0, offset + len(part)) if offset < len(text) else -1


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    for index in (start, last):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    if start > last:
        raise Fault("invalid-argument", f"substring from {start} to {last}")
    return text[start:last]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or len(parts) <= limit else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(items: list[Any], separator: str = "") -> str:
    if wrong := next((i for i in items if not isinstance(i, str)), None):
        raise no_overload("join", wrong)
    return separator.join(items)


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(ord(c), c) for c in text) + '"'


def _format(template: str, arguments: list[Any]) -> str:
    """Source: cel-go strings extension, format, versions below 4."""
    remaining = iter(arguments)
    out, at = [], 0
    while (percent := template.find("%", at)) >= 0:
        out.append(template[at:percent])
        clause = _CLAUSE.match(template, percent)
        if not clause:
            raise Fault("invalid-argument", "the format ends within a clause")
        at = clause.end()
        if clause.group() == "%%":
            out.append("%")
            continue
        missing = object()
        value = next(remaining, missing)
        if value is missing:
            raise Fault("index-out-of-bounds", f"format() has {len(arguments)} arguments and needs more")
        out.append(_clause(clause.group(2), clause.group(1), value))
    return "".join(out) + template[at:]


def _clause(verb: str, precision: str | None, value: Any) -> str:
    if verb == "s":
        return _text(value)
    if verb == "d" and is_number(value):
        return _decimal(value)
    if verb in "fe" and (isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity")):
        return _floating(verb, int(precision or 6), float(str(value).replace("Infinity", "inf")) if isinstance(value, str) else value)
    if verb == "b" and isinstance(value, bool | int):
        return f"{int(value):b}"
    if verb == "o" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:o}"
    if verb in "xX" and not isinstance(value, bool):
        if isinstance(value, int):
            return f"{value:{verb}}"
        if isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if verb == "X" else digits
    if verb not in "sdfeboxX":
        raise Fault("invalid-argument", f"unknown clause %{verb} in a format")
    raise Fault("invalid-argument", f"%{verb} cannot print a {type_name(value)}")


def _decimal(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isinf(value) or math.isnan(value):
        return _special(value)
    raise Fault("invalid-argument", "%d cannot print a double")


def _special(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _floating(verb: str, precision: int, value: float) -> str:
    if isinstance(value, int):
        value = float(value)
    if math.isinf(value) or math.isnan(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    if verb == "f":
        return f"{value:,.{precision}f}"
    mantissa, exponent = f"{value:.{precision}e}".split("e")
    small = str(abs(int(exponent))).zfill(2).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}\u2009×\u200910{'⁻' if exponent.startswith('-') else ''}{small}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_inner(v) for v in value) + "]"
    if isinstance(value, Map):
        return "{" + ", ".join(f"{k}:{v}" for k, v in sorted((_inner(k), _inner(v)) for k, v in value.items())) + "}"
    return _scalar(value)


def _inner(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)


def _scalar(value: Any) -> str:
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return _special(value) if math.isinf(value) or math.isnan(value) else double_text(value)
    if value is None or isinstance(value, bool | int | str | Unsigned):
        return show(value) if not isinstance(value, Unsigned) else str(int(value))
    raise Fault("invalid-argument", f"%s cannot print a {type_name(value)}")


FUNCTIONS.update(
    {
        "contains_string": lambda text, part: part in text,
        "ends_with_string": str.endswith,
        "starts_with_string": str.startswith,
        "matches": lambda text, pattern: bool(_regex(pattern).search(text)),
        "matches_string": lambda text, pattern: bool(_regex(pattern).search(text)),
        "string_char_at_int": _char_at,
        "string_index_of_string": _index_of,
        "string_index_of_string_int": _index_of,
        "string_last_index_of_string": _last_index_of,
        "string_last_index_of_string_int": _last_index_of,
        "string_lower_ascii": lambda text: text.translate(_ASCII_DOWN),
        "string_upper_ascii": lambda text: text.translate(_ASCII_UP),
        "string_replace_string_string": str.replace,
        "string_replace_string_string_int": lambda text, old, new, n: text.replace(old, new, n),
        "string_split_string": _split,
        "string_split_string_int": _split,
        "string_substring_int": _substring,
        "string_substring_int_int": _substring,
        "string_trim": lambda text: text.strip(_SPACES),
        "string_format": _format,
        "strings_quote": _quote,
        "list_join": _join,
        "list_join_string": _join,
        "string_find_string": _find,
        "string_find_all_string": _find_all,
        "string_find_all_string_int": _find_all,
    }
)
