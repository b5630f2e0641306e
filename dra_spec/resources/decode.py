"""From a tree to an attrs object: each class says how its fields are read, this module reads them and collects what is wrong.

A class is `@attrs.frozen(kw_only=True)` with fields made by `f(reader)`. Its class variables: `KNOWN` names further fields that are
valid and not read; `LENIENT` true for core kinds, whose other fields are ignored; `NEAR` lists names that a lenient class knows well
enough to recognise a wrong spelling of a field that it reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from dra_spec.resources.names import NameCheck
from dra_spec.resources.problems import NOWHERE, Problem, Where
from dra_spec.resources.quantity import Quantity, QuantityError
from dra_spec.resources.tree import Node


class Failed(Exception):
    """The value cannot be used; the problem is in the context already."""


@attrs.define
class Context:
    """The file being read and what was found wrong so far."""

    file: str
    problems: list[Problem] = attrs.field(factory=list)
    path: str = ""  # prefix of all paths

    def where(self, node: Node, path: str) -> Where:
        return Where(self.file, node.line, node.column, path, node.block)

    def report(self, code: str, message: str, node: Node, path: str, found: str = "", expected: str = "") -> None:
        if found and "{{" in found:
            message += "; it looks like a template that was not rendered"
        self.problems.append(Problem(code, message, self.where(node, path), found, expected))

    def mismatch(self, expected: str, node: Node, path: str) -> Failed:
        found = node.describe()
        hint = ""
        if node.kind == "bool" and expected.startswith("a string") and node.text not in ("true", "false"):
            hint = f" (YAML reads {node.text!r} as a boolean: put it in quotes)"
        self.report("DRA112", f"found {found}, expected {expected}{hint}", node, path, found, expected)
        return Failed()


Reader = Callable[[Node, str, Context], Any]


def f(reader: Reader, *, required: bool = False, key: str | None = None, default: Any = None) -> Any:
    """A field that is read from the manifest. `key`: its name there, if it is not the attribute's name in camel case."""
    metadata = {"read": reader, "key": key, "required": required}
    return attrs.field(metadata=metadata) if required else attrs.field(default=default, metadata=metadata)


def at() -> Any:
    """The field that keeps where an object stands; it takes no part in comparison."""
    return attrs.field(default=NOWHERE, eq=False, repr=False)


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    known = list(known)
    folded = {k.lower(): k for k in known}
    if name.lower() in folded:
        return folded[name.lower()]
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.75)
    return folded[close[0]] if close else None


def read_object(cls: type, node: Node, path: str, ctx: Context) -> Any:
    """Read a mapping into an attrs class. Raises Failed if a required field cannot be had."""
    if node.kind != "map":
        raise ctx.mismatch("a mapping", node, path)
    readable = {a.metadata["key"] or camel(a.name): a for a in attrs.fields(cls) if "read" in a.metadata}
    check_keys(node, path, ctx, readable, cls)
    values: dict[str, Any] = {}
    failed = False
    for key, attribute in readable.items():
        value = node.value.get(key)
        if value is None or (value.kind == "null" and not attribute.metadata["required"]):
            if attribute.metadata["required"]:
                failed = True
                if not any(nearest(k, [key]) for k in node.value if k not in readable):  # a misspelt field is reported as such
                    ctx.report("DRA111", f"the required field {key!r} is missing", node, child(path, key), "nothing", "a value")
            continue
        try:
            values[attribute.name] = attribute.metadata["read"](value, child(path, key), ctx)
        except Failed:
            failed = failed or attribute.metadata["required"]
    if failed:
        raise Failed
    if "at" in attrs.fields_dict(cls):
        values["at"] = ctx.where(node, path)
    return cls(**values)


def check_keys(node: Node, path: str, ctx: Context, readable: Iterable[str], cls: type) -> None:
    """Report keys that the class does not know, with the name that was meant."""
    readable = set(readable)
    known = readable | set(getattr(cls, "KNOWN", ()))
    lenient = getattr(cls, "LENIENT", False)
    for key, value in node.value.items():
        if key in known:
            continue
        line, column = node.keys.get(key, (value.line, value.column))
        meant = nearest(key, known)
        if lenient:
            # other fields of a core kind are none of our business, unless one of ours is written wrongly
            if meant is None or key in getattr(cls, "NEAR", ()) or not (meant.lower() == key.lower() or meant in readable):
                continue
            if len(key) < 6 and meant.lower() != key.lower():
                continue
        text = f"unknown field {key!r}" + (f", did you mean {meant!r}?" if meant else "")
        ctx.problems.append(
            Problem("DRA110", text, Where(ctx.file, line, column, child(path, key)), key, meant or "one of " + ", ".join(sorted(known)))
        )


# --- readers ---------------------------------------------------------------------------------------------------------


def obj(cls: type) -> Reader:
    return lambda node, path, ctx: read_object(cls, node, path, ctx)


def raw(node: Node, path: str, ctx: Context) -> Any:
    """The value as it stands, as plain data."""
    return node.plain()


def string(check: NameCheck | None = None, *, choices: tuple[str, ...] = (), max_bytes: int = 0) -> Reader:
    """A string; a bad format is reported and the text kept, so that one wrong name does not hide other problems."""

    def read(node: Node, path: str, ctx: Context) -> str:
        if node.kind != "str":
            raise ctx.mismatch("a string", node, path)
        text: str = node.value
        expected = check(text) if check else None
        if expected:
            ctx.report("DRA113", f"found {text[:80]!r}, expected {expected}", node, path, text, expected)
        if choices and text not in choices:
            expected = "one of " + ", ".join(repr(c) for c in choices if c)
            ctx.report("DRA114", f"found {text[:80]!r}, expected {expected}", node, path, text, expected)
            raise Failed
        if max_bytes and len(text.encode("utf-8", "surrogatepass")) > max_bytes:
            ctx.report(
                "DRA115",
                f"found {len(text)} characters, expected at most {max_bytes} bytes",
                node,
                path,
                text[:80],
                f"at most {max_bytes} bytes",
            )
        return text

    return read


def integer(low: int | None = None, high: int | None = 2**63 - 1) -> Reader:
    def read(node: Node, path: str, ctx: Context) -> int:
        if node.kind != "int":
            raise ctx.mismatch("an integer", node, path)
        if (low is not None and node.value < low) or (high is not None and node.value > high) or node.value < -(2**63):
            limits = (
                f"at least {low}"
                if low is not None and node.value < low
                else "a 64-bit integer"
                if high == 2**63 - 1
                else f"at most {high}"
            )
            ctx.report("DRA115", f"found {node.value}, expected {limits}", node, path, str(node.value), limits)
            raise Failed
        return int(node.value)

    return read


def boolean(node: Node, path: str, ctx: Context) -> bool:
    if node.kind != "bool":
        raise ctx.mismatch("true or false", node, path)
    return bool(node.value)


def quantity(node: Node, path: str, ctx: Context) -> Quantity:
    if node.kind not in ("str", "int", "float"):
        raise ctx.mismatch("a quantity", node, path)
    text = node.value if node.kind == "str" else node.text
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        ctx.report("DRA116", str(error), node, path, text[:80], "a quantity")
        raise Failed from None


def items(read: Reader, *, low: int = 0, high: int | None = None, unique: str | None = None) -> Reader:
    """A list; `unique`: the attribute (or "" for the item itself) that must not repeat. Items that fail are left out."""

    def read_list(node: Node, path: str, ctx: Context) -> tuple[Any, ...]:
        if node.kind != "list":
            raise ctx.mismatch("a list", node, path)
        if high is not None and len(node.value) > high:
            ctx.report(
                "DRA115", f"found {len(node.value)} entries, expected at most {high}", node, path, str(len(node.value)), f"at most {high}"
            )
        if len(node.value) < low:
            ctx.report(
                "DRA115", f"found {len(node.value)} entries, expected at least {low}", node, path, str(len(node.value)), f"at least {low}"
            )
        result: list[Any] = []
        seen: dict[Any, int] = {}
        for i, item in enumerate(node.value):
            try:
                value = read(item, f"{path}[{i}]", ctx)
            except Failed:
                continue
            if unique is not None:
                name = getattr(value, unique) if unique else value
                if name in seen:
                    ctx.report(
                        "DRA117",
                        f"{name!r} occurs twice in this list (first on line {seen[name]})",
                        item,
                        f"{path}[{i}]",
                        str(name),
                        "each once",
                    )
                seen.setdefault(name, item.line)
            result.append(value)
        return tuple(result)

    return read_list


def mapping(read: Reader, *, key: NameCheck | None = None, low: int = 0, high: int | None = None) -> Reader:
    """A map from names to values, as a dict in the order of the file."""

    def read_map(node: Node, path: str, ctx: Context) -> dict[str, Any]:
        if node.kind != "map":
            raise ctx.mismatch("a mapping", node, path)
        if high is not None and len(node.value) > high:
            ctx.report(
                "DRA115", f"found {len(node.value)} entries, expected at most {high}", node, path, str(len(node.value)), f"at most {high}"
            )
        if len(node.value) < low:
            ctx.report(
                "DRA115", f"found {len(node.value)} entries, expected at least {low}", node, path, str(len(node.value)), f"at least {low}"
            )
        result: dict[str, Any] = {}
        for name, value in node.value.items():
            expected = key(name) if key else None
            if expected:
                line, column = node.keys.get(name, (value.line, value.column))
                ctx.problems.append(
                    Problem(
                        "DRA113", f"found {name!r}, expected {expected}", Where(ctx.file, line, column, f"{path}[{name}]"), name, expected
                    )
                )
            try:
                result[name] = read(value, f"{path}[{name}]", ctx)
            except Failed:
                continue
        return result

    return read_map


def checked(read: Reader, check: Callable[[Any], str | tuple[str, str] | None]) -> Reader:
    """A reader followed by a rule over the whole value; the rule says what is wrong, perhaps with the path below the value at which it is
    (path, text), or None. No rule where a part was wrong already."""

    def read_checked(node: Node, path: str, ctx: Context) -> Any:
        before = len(ctx.problems)
        value = read(node, path, ctx)
        message = check(value) if len(ctx.problems) == before else None
        if message:
            below, text = message if isinstance(message, tuple) else ("", message)
            ctx.report("DRA118", text, node.at(below), child(path, below) if below else path)
        return value

    return read_checked
