"""Types of the CEL type checker, and when one may stand for another.

Source: the CEL language definition, section Gradual type checking; cel-go v0.29 where the definition leaves a choice.
"""

from __future__ import annotations

import re

import attrs


@attrs.frozen
class Type:
    """`kind`: a primitive's name, or list, map, type, opaque, struct, param, dyn, error. `name` tells opaque, struct, param types apart."""

    kind: str
    name: str = ""
    params: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if self.kind == "param":
            return self.name
        if self.kind == "any":
            return "google.protobuf.Any"
        if self.kind == "null":
            return "null_type"
        base = self.name or {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}.get(self.kind, self.kind)
        return f"{base}({', '.join(map(str, self.params))})" if self.params else base


BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DYN, ANY, ERROR, DURATION, TIMESTAMP = (
    Type(kind) for kind in ("bool", "int", "uint", "double", "string", "bytes", "null", "dyn", "any", "error", "duration", "timestamp")
)
QUANTITY, SEMVER, URL, FORMAT, DEVICE = (
    Type("struct", f"kubernetes.{name}") for name in ("Quantity", "Semver", "URL", "NamedFormat", "DRADevice")
)
IP, CIDR = Type("opaque", "net.IP"), Type("opaque", "net.CIDR")
AUTHZ = tuple(
    Type("struct", f"kubernetes.authorization.{n}") for n in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
OPTIONAL = "optional_type"
_NULLABLE = ("opaque", "struct", "any", "duration", "timestamp")
_WRAPPERS = {
    "google.protobuf.BoolValue": BOOL,
    "google.protobuf.BytesValue": BYTES,
    "google.protobuf.DoubleValue": DOUBLE,
    "google.protobuf.FloatValue": DOUBLE,
    "google.protobuf.Int32Value": INT,
    "google.protobuf.Int64Value": INT,
    "google.protobuf.StringValue": STRING,
    "google.protobuf.UInt32Value": UINT,
    "google.protobuf.UInt64Value": UINT,
}


def list_of(element: Type) -> Type:
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "", (key, value))


def type_of(inner: Type) -> Type:
    return Type("type", "", (inner,))


def optional_of(inner: Type) -> Type:
    return Type("opaque", OPTIONAL, (inner,))


def is_optional(t: Type) -> bool:
    return t.kind == "opaque" and t.name == OPTIONAL


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    return (t.params[0], True) if is_optional(t) else (t, False)


def is_dyn(t: Type) -> bool:
    """Whether the checker lets everything pass: dyn, any and the type of a wrong expression."""
    return t.kind in ("dyn", "any", "error")


_NAMED = {
    **{t.kind: t for t in (BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, DYN, DURATION, TIMESTAMP)},
    "quantity": QUANTITY,
    "semver": SEMVER,
    "url": URL,
    "format": FORMAT,
    "ip": IP,
    "cidr": CIDR,
    **dict(zip(("authorizer", "path_check", "group_check", "resource_check", "decision"), AUTHZ, strict=True)),
}
_TOKEN = re.compile(r"\w+|[<>,]")


def parse_type(text: str) -> Type:
    """`list<A>`, `map<string, dyn>`, `optional<int>`; a capital letter is a type parameter."""
    tokens = _TOKEN.findall(text)

    def one() -> Type:
        name = tokens.pop(0)
        params: list[Type] = []
        if tokens and tokens[0] == "<":
            tokens.pop(0)
            params.append(one())
            while tokens.pop(0) == ",":
                params.append(one())
        if name.isupper():
            return Type("param", name)
        if name == "optional":
            return optional_of(params[0])
        return Type(name, "", tuple(params)) if name in ("list", "map", "type") else _NAMED[name]

    return one()


class Substitution:
    """What the type parameters stand for so far. Trying is on a copy, so that a failed attempt leaves nothing behind."""

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound: dict[Type, Type] = bound if bound is not None else {}
        self._fresh = 0

    def fresh(self) -> Type:
        self._fresh += 1
        return Type("param", f"_var{self._fresh}")

    def assign(self, sources: list[Type], targets: list[Type]) -> bool:
        """Whether each source may stand where its target is expected; binds parameters only if all may."""
        attempt = Substitution(dict(self._bound))
        if len(sources) != len(targets) or not all(attempt._fits(a, b) for a, b in zip(sources, targets, strict=True)):
            return False
        self._bound = attempt._bound
        return True

    def apply(self, t: Type, *, to_dyn: bool = False) -> Type:
        """`t` with its parameters replaced; the unknown ones become dyn if asked for."""
        if t.kind == "param":
            if t in self._bound:
                return self.apply(self._bound[t], to_dyn=to_dyn)
            return DYN if to_dyn else t
        return Type(t.kind, t.name, tuple(self.apply(p, to_dyn=to_dyn) for p in t.params)) if t.params else t

    def _fits(self, a: Type, b: Type) -> bool:
        if b.kind == "param":
            valid, known = self._bind(a, b)
            if valid or known:
                return valid
        if a.kind == "param":
            return self._bind(b, a)[0]
        if is_dyn(a) or is_dyn(b):
            return True
        if a.kind == "null" or b.kind == "null":
            other = b if a.kind == "null" else a
            return other.kind in _NULLABLE or other.kind == "null"
        if a.kind == "type":
            return b.kind == "type"
        if a.kind != b.kind or a.name != b.name or len(a.params) != len(b.params):
            return False
        return all(self._fits(x, y) for x, y in zip(a.params, b.params, strict=True))

    def _bind(self, t: Type, param: Type) -> tuple[bool, bool]:
        """(`t` may stand for `param`, `param` was known before)."""
        if t == param:
            return True, True
        known = self._bound.get(param)
        if known is None:
            if self._occurs(param, t):
                return False, False
            self._bound[param] = t
            return True, False
        if t == known:
            return True, True
        if not self._fits(t, known):
            return False, True
        general = most_general(t, known)
        if not self._occurs(param, general):
            self._bound[param] = general
        return True, True

    def _occurs(self, param: Type, within: Type) -> bool:
        if within == param:
            return True
        if within.kind == "param":
            return within in self._bound and self._occurs(param, self._bound[within])
        return any(self._occurs(param, p) for p in within.params)


def most_general(a: Type, b: Type) -> Type:
    return a if _no_more_specific(a, b) else b


def _no_more_specific(a: Type, b: Type) -> bool:
    if is_dyn(a) or a.kind == "param":
        return True
    if is_dyn(b) or b.kind == "param":
        return False
    if a.kind != b.kind or a.name != b.name or len(a.params) != len(b.params):
        return False
    return all(_no_more_specific(x, y) for x, y in zip(a.params, b.params, strict=True))


def wrapped(message: str) -> Type | None:
    """The primitive that a protobuf wrapper message stands for."""
    return _WRAPPERS.get(message)
