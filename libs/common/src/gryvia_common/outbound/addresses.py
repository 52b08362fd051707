"""Which addresses a user may make the platform call: only those that everybody on the internet could reach as well.

A service stands inside the cluster's network, next to the cloud's metadata service, with its own identity. So an address is refused
unless it is public, and an IPv6 address that carries an IPv4 one (mapped, 6to4, NAT64, ISATAP) is judged by that one too.
The lists are written out from IANA's special-purpose registries: what `ipaddress.is_global` says changes with the version of Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from gryvia_common.errors import Terminal

Address = IPv4Address | IPv6Address

_METADATA_4 = ("169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32")
_METADATA_6 = ("fd00:ec2::/32", "fd20:ce::/32", "fe80::/10")
_NOT_PUBLIC_4 = (
    ("0.0.0.0/8", "this host"),
    ("127.0.0.0/8", "loopback"),
    ("10.0.0.0/8", "private"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("100.64.0.0/10", "shared by carriers (RFC 6598)"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "reserved for documentation"),
    ("198.51.100.0/24", "reserved for documentation"),
    ("203.0.113.0/24", "reserved for documentation"),
    ("192.88.99.0/24", "a relay"),
    ("198.18.0.0/15", "reserved for benchmarks"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
)
_NOT_PUBLIC_6 = (
    ("::/128", "this host"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
    ("fec0::/10", "private"),
    ("ff00::/8", "multicast"),
    ("2001::/23", "reserved"),
    ("2001:db8::/32", "reserved for documentation"),
    ("3fff::/20", "reserved for documentation"),
)
_PUBLIC_6 = IPv6Network("2000::/3")
_MAPPED, _NAT64, _SIX_TO_FOUR = IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})

_V4 = tuple((IPv4Network(network), words) for network, words in _NOT_PUBLIC_4)
_V6 = tuple((IPv6Network(network), words) for network, words in _NOT_PUBLIC_6)
_METADATA: tuple[IPv4Network | IPv6Network, ...] = (
    *map(IPv4Network, _METADATA_4),
    *map(IPv6Network, _METADATA_6),
)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+", re.ASCII)


def why_refused(address: Address) -> str:
    """What is wrong with calling this address, as words behind "is"; empty for a public one."""
    return next(filter(None, map(_why, faces(address))), "")


def is_metadata(address: Address) -> bool:
    """Link-local, where clouds keep the identity of the machine, or another address of theirs for the same."""
    return any(map(_listed, faces(address)))


def faces(address: Address) -> tuple[Address, ...]:
    """The address itself, and the IPv4 address that it leads to."""
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    inner: int | None = None
    if address in _MAPPED or address in _NAT64 or (number >> 32) & 0xFFFFFFFF in _ISATAP:
        inner = number & 0xFFFFFFFF
    elif address in _SIX_TO_FOUR:
        inner = (number >> 80) & 0xFFFFFFFF
    return (address,) if inner is None else (address, IPv4Address(inner))


def literal(host: str) -> Address | None:
    """The address that a host of a URL is, in any of the forms that some resolver takes for one (127.1, 0x7f.0.0.1, 2130706433,
    0177.0.0.1, a dot at the end); None when it is a name. Raises Terminal for what looks like one and is none, or has a zone."""
    bare = host.removesuffix(".")
    if ":" in bare:
        if "%" in bare:
            raise Terminal(f"host {host[:80]!r} has a zone id, which only means something on one machine")
        try:
            return IPv6Address(bare)
        except ValueError as error:
            raise Terminal(f"host {host[:80]!r} is not an IPv6 address") from error
    parts = bare.split(".")
    if _NUMBER.fullmatch(parts[-1]) is None:
        return None
    numbers = [_number(part) for part in parts]
    *high, low = (-1 if number is None else number for number in numbers)
    if len(numbers) > 4 or any(not 0 <= number < 256 for number in high) or not 0 <= low < 256 ** (4 - len(high)):
        raise Terminal(f"host {host[:80]!r} is not an IPv4 address")
    return IPv4Address(sum(number << (24 - 8 * index) for index, number in enumerate(high)) + low)


def addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """What a resolver answered. Raises Terminal for what is no plain address (a zone id)."""
    found = []
    for text in texts:
        try:
            found.append(ip_address(text if "%" not in text else ""))
        except ValueError as error:
            raise Terminal(f"the resolver answered {text[:80]!r}, which is no address that can be checked") from error
    return tuple(found)


def _why(address: Address) -> str:
    if isinstance(address, IPv4Address):
        known = next((words for network, words in _V4 if address in network), "")
    elif address in _MAPPED or address in _NAT64:
        return ""
    else:
        known = next((words for network, words in _V6 if address in network), "")
        known = known or ("" if address in _PUBLIC_6 else "not public")
    return "the cloud's metadata or link-local" if _listed(address) else known


def _listed(address: Address) -> bool:
    return any(address in network for network in _METADATA)


def _number(part: str) -> int | None:
    if _NUMBER.fullmatch(part) is None or len(part) > 40:
        return None
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    try:
        return int(part, 8 if part.startswith("0") and len(part) > 1 else 10)
    except ValueError:
        return None
