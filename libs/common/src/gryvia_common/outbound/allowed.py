"""The operator's exceptions: hosts and networks that users may call though they are not public.

Entries: a name, an address, a network (CIDR), each but the network also with `:port`. A name opens whatever it resolves to except
link-local addresses, where clouds keep credentials: those want their own entry as address or network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from gryvia_common.errors import Terminal
from gryvia_common.outbound.addresses import Address, faces, is_metadata, why_refused

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Entry:
    """`name` in lower case, or `network`. `port` None: any."""

    name: str = ""
    network: IPv4Network | IPv6Network | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be called besides the public internet."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Allowed:
        """Raises Terminal for an entry that is none."""
        return cls(tuple(_entry(text.strip()) for text in texts if text.strip()))

    def why_not(self, host: str, port: int, address: Address) -> str:
        """Why a host at this address may not be called, as words behind "is"; empty when it may."""
        why = why_refused(address)
        if not why or self._by_address(address, port):
            return ""
        return "" if self._by_name(host, port) and not is_metadata(address) else why

    def _by_address(self, address: Address, port: int) -> bool:
        shown = faces(address)
        return any(
            entry.port in (None, port) and any(face in entry.network for face in shown)
            for entry in self.entries
            if entry.network is not None
        )

    def _by_name(self, host: str, port: int) -> bool:
        name = host.removesuffix(".").lower()
        return any(entry.name == name and entry.port in (None, port) for entry in self.entries if entry.name)


def _entry(text: str) -> Entry:
    if "/" in text:
        return Entry(network=_network(text, text))
    host, port = text, None
    bracketed = re.fullmatch(r"\[([^]]+)\](?::(\d{1,5}))?", text)
    plain = re.fullmatch(r"([^:]+)(?::(\d{1,5}))?", text)
    if found := bracketed or plain:
        host, port = found[1], int(found[2]) if found[2] else None
    if port is not None and not 0 < port < 65536:
        raise Terminal(f"allowed {text!r}: port {port} is not 1 to 65535")
    if ":" in host or re.fullmatch(r"[0-9.]+", host):
        return Entry(network=_network(host, text), port=port)
    if _NAME.fullmatch(host) is None:
        raise Terminal(
            f"allowed {text!r}: use a host name, an address or a network in CIDR form, with :port if only that one is meant"
        )
    return Entry(name=host.lower(), port=port)


def _network(text: str, entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise Terminal(f"allowed {entry!r}: {error}") from error
