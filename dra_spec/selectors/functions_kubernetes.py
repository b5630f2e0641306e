"""Functions of the Kubernetes libraries by overload: quantity, semver, addresses, URLs, named formats.

Source: k8s.io/apiserver pkg/cel/library, v0.37.2.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote

from dra_spec.resources.quantity import Quantity
from dra_spec.resources.semver import SemVer
from dra_spec.selectors.declarations import FORMATS
from dra_spec.selectors.functions_standard import FUNCTIONS
from dra_spec.selectors.runtime import INT_MAX, NONE, Cidr, Fault, Format, Ip, Map, Optional, Url

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_DATETIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[tT]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?([zZ]|[+-]([01]\d|2[0-3]):?[0-5]\d)", re.ASCII
)
_ESCAPED = re.compile(r"(%[0-9A-Fa-f]{2}|[A-Za-z0-9!$&'()*+,;=:@/._~\[\]-])*", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_OVERFLOW = re.compile(r"\d{20}", re.ASCII)
# the lengths of regular expressions that the cost model assumes
_REGEX = dict(zip(FORMATS, (30, 60, 30, 60, 30, 60, 30, 40, 1103, 70, 84, 71, 71), strict=True))


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except ValueError as error:
        raise Fault("bad-quantity", str(error)) from None


def _semver(text: str, normalize: bool = False) -> SemVer:
    try:
        return SemVer.parse_normalized(text) if normalize else SemVer.parse(text)
    except ValueError as error:
        # upstream says of wrong characters something else than of a wrong form
        kind = "invalid-argument" if re.fullmatch(r"[^.]+\.[^.]+\..+", text, re.DOTALL) and not _OVERFLOW.search(text) else "bad-semver"
        raise Fault(kind, str(error)) from None


def _succeeds(function: Callable[..., Any]) -> Callable[..., bool]:
    def test(*args: Any) -> bool:
        try:
            function(*args)
        except Fault:
            return False
        return True

    return test


def _as_integer(quantity: Quantity) -> int:
    number = quantity.as_int64()
    if number is None:
        raise Fault("quantity-not-integer", f"{quantity} has no exact 64 bit integer")
    return number


def _compare(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _signed(number: int) -> int:
    """An unsigned 64 bit number read as a signed one."""
    return number if number <= INT_MAX else number - 2**64


def _ip(text: str) -> Ip:
    try:
        if re.fullmatch(r"\d+", text, re.ASCII) or "%" in text:
            raise ValueError
        found = ipaddress.ip_address(text)
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            raise ValueError
    except ValueError:
        raise Fault("bad-ip", f"{text!r} is not an IP address") from None
    return found


def _cidr(text: str) -> Cidr:
    address, slash, bits = text.partition("/")
    try:
        if not slash or not re.fullmatch(r"0|[1-9]\d{0,2}", bits, re.ASCII) or "%" in address:
            raise ValueError
        found = ipaddress.ip_interface(text)
        if isinstance(found, ipaddress.IPv6Interface) and found.ip.ipv4_mapped is not None:
            raise ValueError
    except ValueError:
        raise Fault("bad-cidr", f"{text!r} is not a network address") from None
    return found


def _contains_ip(cidr: Cidr, address: Ip) -> bool:
    return cidr.version == address.version and address in cidr.network


def _contains_cidr(outer: Cidr, inner: Cidr) -> bool:
    if outer.version != inner.version or outer.network.prefixlen > inner.network.prefixlen:
        return False
    return inner.network.network_address in outer.network


def _link_local_multicast(address: Ip) -> bool:
    if address.version == 4:
        return address in ipaddress.ip_network("224.0.0.0/24")
    return (int(address) >> 112) & 0xFF0F == 0xFF02


def _global_unicast(address: Ip) -> bool:
    if address.version == 4 and (int(address) == 0 or int(address) == 2**32 - 1):
        return False
    return not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)


def _canonical(text: str) -> bool:
    return str(_ip(text)) == text


def _bad_url(text: str) -> Fault:
    return Fault("bad-url", f"{text!r} is not a URL: expected an absolute one or an absolute path")


def _url(text: str) -> Url:
    """As a request target: a scheme with anything behind it, or an absolute path."""
    scheme = _SCHEME.match(text)
    if re.search(r"[\x00-\x1f\x7f]", text) or not (scheme or text.startswith("/")):
        raise _bad_url(text)
    rest = (text[scheme.end() :] if scheme else text).partition("#")[0]
    name = scheme.group()[:-1].lower() if scheme else ""
    if not rest.startswith("/"):
        return Url(text, SplitResult(name, "", "", "", ""), "")
    location, query = rest.partition("?")[::2]
    authority, path = "", location
    if location.startswith("//"):
        authority, slash, path = location[2:].partition("/")
        path = slash + path
    host, port = authority.rpartition("@")[2], re.search(r":([^:\]]*)$", authority)
    bad_port = port is not None and not re.fullmatch(r"\d*", port.group(1), re.ASCII)
    if bad_port or re.search(r"%(?![0-9A-Fa-f]{2})", path + authority) or re.search(r"[ <>\"\\^`{|}]", host):
        raise _bad_url(text)
    return Url(text, SplitResult(name, authority, path, query, ""), unquote(path))


def _host(url: Url) -> str:
    return unquote(url.parts.netloc.rpartition("@")[2])


def _hostname(url: Url) -> str:
    host = _host(url)
    if host.startswith("["):
        return host[1 : host.find("]")]
    return host.rpartition(":")[0] if re.search(r":\d*$", host) else host


def _port(url: Url) -> str:
    match = re.search(r":(\d*)$", _host(url).rpartition("]")[2])
    return match.group(1) if match else ""


def _escaped_path(url: Url) -> str:
    return url.parts.path if _ESCAPED.fullmatch(url.parts.path) else quote(url.path, safe="/$&+,;=:@-._~")


def _query(url: Url) -> Map:
    pairs = "&".join(pair for pair in url.parts.query.split("&") if ";" not in pair)
    return Map({k: list(v) for k, v in parse_qs(pairs, keep_blank_values=True).items()})


def _named(pattern: re.Pattern[str], longest: int, *, prefix: bool = False) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        if prefix and len(text) > 1 and text.endswith("-"):
            text = text[:-2] + "a"
        found = [] if len(text) <= longest else [f"must be no more than {longest} characters"]
        return found if pattern.fullmatch(text) else [*found, "does not have the form of the format"]

    return problems


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    problems = _named(_SUBDOMAIN, 253)(prefix) if slash else []
    if text.count("/") > 1 or not name:
        return [*problems, "does not have the form of a qualified name"]
    return [*problems, *_named(_VALUE, 63)(name)]


def _uri(text: str) -> list[str]:
    try:
        _url(text)
    except Fault as fault:
        return [fault.message]
    return []


def _byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["is not base64"]
    return [] if text else ["is empty"]


def _calendar(pattern: re.Pattern[str]) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        match = pattern.fullmatch(text)
        if not match:
            return ["is no date"]
        year, month, day = (int(g) for g in match.groups()[:3])
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return [] if 1 <= month <= 12 and 1 <= day <= days[month - 1] else ["is no date"]

    return problems


_PROBLEMS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _named(_LABEL, 63),
    "dns1123Subdomain": _named(_SUBDOMAIN, 253),
    "dns1035Label": _named(_LABEL_1035, 63),
    "qualifiedName": _qualified_name,
    "dns1123LabelPrefix": _named(_LABEL, 63, prefix=True),
    "dns1123SubdomainPrefix": _named(_SUBDOMAIN, 253, prefix=True),
    "dns1035LabelPrefix": _named(_LABEL_1035, 63, prefix=True),
    "labelValue": _named(_VALUE, 63),
    "uri": _uri,
    "uuid": lambda text: [] if _UUID.fullmatch(text) else ["is no UUID"],
    "byte": _byte,
    "date": _calendar(_DATE),
    "datetime": _calendar(_DATETIME),
}


def _validate(named: Format, text: str) -> Optional:
    problems = _PROBLEMS[named.name](text)
    return Optional(problems, True) if problems else NONE


def _format(name: str) -> Format:
    return Format(name, _REGEX[name])


FUNCTIONS.update(
    {
        "string_to_quantity": _quantity,
        "is_quantity_string": _succeeds(_quantity),
        "quantity_sign": lambda q: (q.value > 0) - (q.value < 0),
        "quantity_get_float": lambda q: q.approximate_float(),
        "quantity_get_int": _as_integer,
        "quantity_is_integer": lambda q: q.as_int64() is not None,
        "quantity_add": lambda a, b: a + b,
        "quantity_add_int": lambda a, b: a + Quantity.of(b),
        "quantity_sub": lambda a, b: a - b,
        "quantity_sub_int": lambda a, b: a - Quantity.of(b),
        "string_to_semver": _semver,
        "string_bool_to_semver": _semver,
        "is_semver_string": _succeeds(_semver),
        "is_semver_string_bool": _succeeds(_semver),
        "semver_major": lambda v: _signed(v.major),
        "semver_minor": lambda v: _signed(v.minor),
        "semver_patch": lambda v: _signed(v.patch),
        "string_to_ip": _ip,
        "is_ip": _succeeds(_ip),
        "ip_is_canonical": _canonical,
        "ip_family": lambda a: a.version,
        "ip_is_unspecified": lambda a: a.is_unspecified,
        "ip_is_loopback": lambda a: a.is_loopback,
        "ip_is_link_local_multicast": _link_local_multicast,
        "ip_is_link_local_unicast": lambda a: a.is_link_local,
        "ip_is_global_unicast": _global_unicast,
        "ip_to_string": str,
        "string_to_cidr": _cidr,
        "is_cidr": _succeeds(_cidr),
        "cidr_contains_ip_string": lambda c, text: _contains_ip(c, _ip(text)),
        "cidr_contains_ip_ip": _contains_ip,
        "cidr_contains_cidr_string": lambda c, text: _contains_cidr(c, _cidr(text)),
        "cidr_contains_cidr": _contains_cidr,
        "cidr_ip": lambda c: c.ip,
        "cidr_prefix_length": lambda c: c.network.prefixlen,
        "cidr_masked": lambda c: ipaddress.ip_interface(str(c.network)),
        "cidr_to_string": lambda c: c.with_prefixlen,
        "string_to_url": _url,
        "is_url_string": _succeeds(_url),
        "url_get_scheme": lambda u: u.parts.scheme,
        "url_get_host": _host,
        "url_get_hostname": _hostname,
        "url_get_port": _port,
        "url_get_escaped_path": _escaped_path,
        "url_get_query": _query,
        "format-validate": _validate,
        "format-named": lambda name: Optional(_format(name), True) if name in _REGEX else NONE,
    }
)
for _kind in ("quantity", "semver"):
    FUNCTIONS[f"{_kind}_compare_to"] = _compare
    FUNCTIONS[f"{_kind}_is_greater_than"] = lambda a, b: a > b
    FUNCTIONS[f"{_kind}_is_less_than"] = lambda a, b: a < b
for _name in FORMATS:
    FUNCTIONS[f"format.{_name}"] = lambda name=_name: _format(name)
