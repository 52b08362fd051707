"""What Kubernetes takes as a name or a label value, so that a service can say what to change before the API server refuses."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def is_dns_label(name: str, *, any_length: bool = False) -> bool:
    """RFC 1123 label: a host name, a namespace. `any_length`: what `child_name` makes of it is one."""
    return _LABEL.fullmatch(name) is not None and (any_length or len(name) <= 63)


def is_service_name(name: str) -> bool:
    """RFC 1035 label: as is_dns_label, but it starts with a letter."""
    return is_dns_label(name) and name[0].isalpha()


def is_subdomain(name: str, *, longest: int = 253) -> bool:
    """RFC 1123 subdomain: what most objects may be called. `longest`: 63 where the name becomes a label value."""
    return _SUBDOMAIN.fullmatch(name) is not None and len(name) <= longest


def is_label_value(text: str) -> bool:
    """A label value that is not empty."""
    return _LABEL_VALUE.fullmatch(text) is not None and len(text) <= 63
