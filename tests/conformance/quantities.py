"""Quantities against recorded answers of k8s.io/apimachinery pkg/api/resource and of the CEL quantity functions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from corpus import entries
from report import Disagreement, Report, sorted_out

from dra_spec.resources import Quantity, QuantityError
from dra_spec.selectors import SelectorDevice, SelectorError, compile_selector

# input -> (why it is right to differ, where that is said)
LISTED: dict[str, tuple[str, str]] = {}
DEVICE = SelectorDevice("a/b/c", "a", {}, {})
_STYLES = {"BinarySI": "binary", "DecimalSI": "decimal", "DecimalExponent": "exponent"}


def run(paths: list[Path]) -> Report:
    """Raises UnreadableFile."""
    agreed = total = 0
    found: list[Disagreement] = []
    for path in paths:
        for entry in entries(path):
            total += 1
            differences = list(_differences(entry))
            agreed += not differences
            for expected, ours in differences[:1]:
                found.append(Disagreement(path.name, entry.get("input") or f"{entry.get('a')} and {entry.get('b')}", expected, ours))
    return sorted_out(agreed, total, found, LISTED)


def _differences(entry: dict[str, Any]) -> list[tuple[str, str]]:
    ours: dict[str, Any]
    if "a" in entry:
        ours = _compared(entry["a"], entry["b"])
    elif "canonical" in entry:
        ours = _valid(entry)
    else:
        ours = {"celIsQuantity": cel(f"isQuantity({literal(entry['input'])})"), "errorClass": error_class(entry["input"])}
    theirs = {key: entry[key] for key in ours if key in entry}
    if "decimal" in theirs:
        theirs["decimal"] = Fraction(theirs["decimal"])
    if "approximateFloat" in theirs:
        theirs["approximateFloat"] = float(theirs["approximateFloat"])
    return [(f"{key} {theirs[key]}", str(ours[key])) for key in theirs if theirs[key] != ours[key]]


def _valid(entry: dict[str, Any]) -> dict[str, Any]:
    text = literal(entry["input"])
    try:
        quantity = Quantity.parse(entry["input"])
    except QuantityError:
        return {"canonical": "an error"}
    integer = cel(f"quantity({text}).asInteger() == {entry['celAsInteger']}") if entry.get("celAsInteger") is not None else None
    whole = cel(f"quantity({text}).isInteger()")
    ours: dict[str, Any] = {
        "decimal": quantity.value,
        "format": next(name for name, style in _STYLES.items() if style == quantity.style),
        "sign": (quantity.value > 0) - (quantity.value < 0),
        "approximateFloat": quantity.approximate_float(),
        "celIsInteger": whole,
        "celAsInteger": entry["celAsInteger"] if integer is True else quantity.as_int64(),
    }
    if not entry.get("canonicalLosesValue"):  # what upstream prints there has another value than what it read
        ours["canonical"] = str(quantity)
    for name, scale in (("value", 1), ("milliValue", 1000)):
        # upstream's rounding of negative numbers that it does not hold as an int64 is wrong, so those are not compared
        held = quantity.value >= 0 or (quantity.form is not None and quantity.form[2])
        if held and -(2**63) < quantity.value * scale < 2**63:
            ours[name] = _away_from_zero(quantity.value * scale)
    return ours


def _away_from_zero(number: Fraction) -> int:
    return -(-number // 1) if number >= 0 else number // 1


def _compared(a: str, b: str) -> dict[str, Any]:
    left, right = Quantity.parse(a), Quantity.parse(b)
    return {"compare": (left > right) - (left < right), "sum": str(left + right), "difference": str(left - right)}


def literal(text: str) -> str:
    """As a CEL string."""
    return '"' + "".join(c if c.isalnum() or c in " .+-" else f"\\U{ord(c):08x}" for c in text) + '"'


def cel(expression: str) -> object:
    """What a selector says: a bool, or the class of its error."""
    answer = compile_selector(expression).matches(DEVICE)
    return answer.kind if isinstance(answer, SelectorError) else answer


def error_class(text: str) -> str:
    """`format`: no number with something behind it; `suffix`: a number with an unknown suffix; "" if it is a quantity."""
    try:
        Quantity.parse(text)
    except QuantityError as error:
        return error.kind
    return ""
