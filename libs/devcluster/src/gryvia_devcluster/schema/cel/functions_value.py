"""Kubernetes' CEL functions on structured text: quantities, URLs, IP addresses, CIDRs and semantic versions.

Such a value is a map of one entry, `{"@quantity": "1.5"}`, in canonical form, so that `==` holds for equal values.
"""

from __future__ import annotations

import ipaddress
import re
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from gryvia_devcluster.schema.cel.functions_text import Declaration
from gryvia_devcluster.schema.formats import is_uri

Value = dict[str, str]

_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(m|n|u|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d+)?$", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {name: power for power, name in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_SEMVER = re.compile(r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$", re.ASCII)


def parse_quantity(text: str) -> Decimal:
    """The number a Kubernetes quantity stands for. Raises ValueError."""
    matched = _QUANTITY.match(text)
    if matched is None:
        raise ValueError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    amount, suffix = Decimal(matched.group(1)), matched.group(2) or ""
    if suffix in _BINARY:
        return amount * Decimal(1024 ** _BINARY[suffix])
    if suffix in _DECIMAL:
        return amount.scaleb(_DECIMAL[suffix])
    return amount.scaleb(int(suffix[1:])) if suffix else amount


def _holds(parse: Any) -> Any:
    def test(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return test


def _quantity(text: str) -> Value:
    return _of(parse_quantity(text))


def _of(amount: Decimal) -> Value:
    return {"@quantity": f"{amount.normalize():f}"}


def _amount(value: Value) -> Decimal:
    if "@quantity" not in value:
        raise ValueError("no such overload")
    return Decimal(value["@quantity"])


def _other(value: Any) -> Decimal:
    return Decimal(value) if isinstance(value, int) else _amount(value)


def _order(left: Value, right: Value) -> int:
    a, b = (_version(left), _version(right)) if "@semver" in left else (_amount(left), _amount(right))
    return (a > b) - (a < b)  # type: ignore[operator]  # both sides are of one kind


def _as_integer(value: Value) -> int:
    amount = _amount(value)
    if amount != amount.to_integral_value():
        raise ValueError("cannot convert value to integer")
    return int(amount)


def _semver(text: str) -> Value:
    if not _SEMVER.match(text):
        raise ValueError("Invalid character(s) found or malformed version")
    return {"@semver": text.partition("+")[0]}


def _version(value: Value) -> tuple[Any, ...]:
    matched = _SEMVER.match(value["@semver"])
    if matched is None:
        raise ValueError("no such overload")
    release = tuple(int(part) for part in matched.group(1, 2, 3))
    pre = matched.group(4)
    marks = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")) if pre else ()
    return (release, not pre, marks)


def _url(text: str) -> Value:
    if not is_uri(text):
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return {"@url": text}


def _port(value: Value) -> str:
    port = urlsplit(value["@url"]).port
    return "" if port is None else str(port)


def _address(text: str) -> Value:
    if "%" in text:
        raise ValueError(f'IP Address "{text}" with zone value is not allowed')
    return {"@ip": str(ipaddress.ip_address(text))}


def _ip(value: Value) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(value["@ip"])


def _cidr(text: str) -> Value:
    if "/" not in text:
        raise ValueError(f"network address parse error during conversion from string: {text}")
    return {"@cidr": str(ipaddress.ip_interface(text))}


def _network(value: Value | str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_interface(value if isinstance(value, str) else value["@cidr"]).network


def _contains_ip(cidr: Value, ip: Value | str) -> bool:
    return ipaddress.ip_address(ip if isinstance(ip, str) else ip["@ip"]) in _network(cidr)


def _contains_cidr(outer: Value, inner: Value | str) -> bool:
    a, b = _network(outer), _network(inner)
    return a.version == b.version and b.subnet_of(a)  # type: ignore[arg-type]  # the versions are equal


_S, _D, _B, _I = "string", "dyn", "bool", "int"

VALUE_FUNCTIONS: list[Declaration] = [
    ("quantity", (_S,), _D, False, _quantity),
    ("isQuantity", (_S,), _B, False, _holds(parse_quantity)),
    ("sign", (_D,), _I, True, lambda value: int(_amount(value).compare(0))),
    ("isInteger", (_D,), _B, True, lambda value: _amount(value) == _amount(value).to_integral_value()),
    ("asInteger", (_D,), _I, True, _as_integer),
    ("asApproximateFloat", (_D,), "double", True, lambda value: float(_amount(value))),
    ("add", (_D, _D), _D, True, lambda left, right: _of(_amount(left) + _other(right))),
    ("sub", (_D, _D), _D, True, lambda left, right: _of(_amount(left) - _other(right))),
    ("isGreaterThan", (_D, _D), _B, True, lambda left, right: _order(left, right) > 0),
    ("isLessThan", (_D, _D), _B, True, lambda left, right: _order(left, right) < 0),
    ("compareTo", (_D, _D), _I, True, _order),
    ("semver", (_S,), _D, False, _semver),
    ("isSemver", (_S,), _B, False, _holds(_semver)),
    ("major", (_D,), _I, True, lambda value: _version(value)[0][0]),
    ("minor", (_D,), _I, True, lambda value: _version(value)[0][1]),
    ("patch", (_D,), _I, True, lambda value: _version(value)[0][2]),
    ("url", (_S,), _D, False, _url),
    ("isURL", (_S,), _B, False, is_uri),
    ("getScheme", (_D,), _S, True, lambda value: urlsplit(value["@url"]).scheme),
    ("getHost", (_D,), _S, True, lambda value: urlsplit(value["@url"]).netloc.rpartition("@")[2]),
    ("getHostname", (_D,), _S, True, lambda value: urlsplit(value["@url"]).hostname or ""),
    ("getPort", (_D,), _S, True, _port),
    ("getEscapedPath", (_D,), _S, True, lambda value: quote(urlsplit(value["@url"]).path, safe="/%:@!$&'()*+,;=~")),
    ("getQuery", (_D,), _D, True, lambda value: parse_qs(urlsplit(value["@url"]).query, keep_blank_values=True)),
    ("ip", (_S,), _D, False, _address),
    ("isIP", (_S,), _B, False, _holds(_address)),
    ("ip.isCanonical", (_S,), _B, False, lambda text: _address(text)["@ip"] == text),
    ("family", (_D,), _I, True, lambda value: _ip(value).version),
    ("isUnspecified", (_D,), _B, True, lambda value: _ip(value).is_unspecified),
    ("isLoopback", (_D,), _B, True, lambda value: _ip(value).is_loopback),
    ("isLinkLocalUnicast", (_D,), _B, True, lambda value: _ip(value).is_link_local),
    ("isGlobalUnicast", (_D,), _B, True, lambda value: not (_ip(value).is_multicast or _ip(value).is_loopback)),
    ("cidr", (_S,), _D, False, _cidr),
    ("isCIDR", (_S,), _B, False, _holds(_cidr)),
    ("containsIP", (_D, _D), _B, True, _contains_ip),
    ("containsCIDR", (_D, _D), _B, True, _contains_cidr),
    ("prefixLength", (_D,), _I, True, lambda value: _network(value).prefixlen),
    ("masked", (_D,), _D, True, lambda value: {"@cidr": str(_network(value))}),
    ("ip", (_D,), _D, True, lambda value: {"@ip": value["@cidr"].partition("/")[0]}),
]
