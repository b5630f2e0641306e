"""Formats of names in the API. Source: apimachinery validation helpers; resource validation (qualified names, pool names)."""

from __future__ import annotations

import re
from collections.abc import Callable

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")

# A check says what was expected, or None if the text is fine.
NameCheck = Callable[[str], str | None]


def dns_label(text: str) -> str | None:
    if len(text) <= 63 and _DNS_LABEL.fullmatch(text):
        return None
    return "a DNS label: at most 63 lower-case letters, digits and '-', with a letter or digit at both ends"


def dns_subdomain(text: str) -> str | None:
    if len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text):
        return None
    return "a DNS subdomain: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"


def driver_name(text: str) -> str | None:
    # upper case is tolerated by the API server, with a warning
    if 0 < len(text) <= 63 and _DNS_SUBDOMAIN.fullmatch(text.lower()):
        return None
    return "a driver name: a DNS subdomain of at most 63 characters"


def pool_name(text: str) -> str | None:
    if len(text) <= 253 and all(_DNS_SUBDOMAIN.fullmatch(part) for part in text.split("/")):
        return None
    return "a pool name: DNS subdomains separated by '/', at most 253 characters"


def qualified_name(text: str) -> str | None:
    """Names of attributes and capacities: a C identifier of at most 32 characters, perhaps after `domain/`."""
    domain, slash, ident = text.rpartition("/")
    if len(ident) <= 32 and _C_IDENTIFIER.fullmatch(ident) and (not slash or (len(domain) <= 63 and _DNS_SUBDOMAIN.fullmatch(domain))):
        return None
    return "an identifier of at most 32 letters, digits and '_', perhaps with a domain before it as in 'example.com/name'"


def fully_qualified_name(text: str) -> str | None:
    if "/" in text and qualified_name(text) is None:
        return None
    return "a fully qualified name such as 'example.com/name'"


def label_key(text: str) -> str | None:
    prefix, slash, name = text.rpartition("/")
    if name and len(name) <= 63 and _LABEL_VALUE.fullmatch(name) and (not slash or dns_subdomain(prefix) is None):
        return None
    return "a label name, perhaps with a DNS subdomain and '/' before it"


def label_value(text: str) -> str | None:
    if len(text) <= 63 and _LABEL_VALUE.fullmatch(text):
        return None
    return "a label value: at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
