"""The cluster's network as a pod's Python sees it, by changing the `socket` module of that process.

Names of the cluster resolve from the file the node keeps; all others go to the real resolver. A bind to every address
(`0.0.0.0`, `::` or empty) binds to the pod's own, so that two pods can both listen on 8080; a connection to localhost
goes to the pod's own address if only that listens on the port. Ports that the node could not open as written
(below 1024 without root) are replaced by where they really are. Standard library only; runs in the user's interpreter.
"""

from __future__ import annotations

import json
import os
from types import ModuleType
from typing import Any

Address = Any  # what `socket` takes: a tuple for the internet families, other things elsewhere

_WILDCARDS = ("", "0.0.0.0")
_LOCAL = ("localhost", "127.0.0.1")
_LISTEN = "0A"


class Names:
    """The node's file, read again when it has been replaced."""

    def __init__(self, path: str, pod_ip: str) -> None:
        self._path = path
        self._pod_ip = pod_ip
        self._hostname = os.environ.get("HOSTNAME", "")
        namespace = os.environ.get("GRYVIA_POD_NAMESPACE", "default")
        self._suffixes = ("", f".{namespace}.svc.cluster.local", ".svc.cluster.local", ".cluster.local")
        self._seen: tuple[int, int] | None = None
        self._names: dict[str, list[str]] = {}
        self._redirects: dict[str, int] = {}

    def addresses(self, host: str) -> list[str] | None:
        """The addresses of a cluster name, empty for one that looks like it but is none now; None for all else."""
        name = host.rstrip(".").lower()
        if not name or name.replace(".", "").isdigit() or ":" in name:
            return None
        self._refresh()
        for suffix in self._suffixes:
            found = self._names.get(name + suffix)
            if found:
                return found
        if self._pod_ip and name == self._hostname.lower():
            return [self._pod_ip]
        return [] if name.endswith((".cluster.local", ".svc")) else None

    def redirect(self, ip: str, port: int) -> int:
        if self._redirects or self._seen is None:
            self._refresh()
        return self._redirects.get(f"{ip}:{port}", port)

    def _refresh(self) -> None:
        try:
            found = os.stat(self._path)
            seen = (found.st_mtime_ns, found.st_ino)
            if seen != self._seen:
                with open(self._path) as file:
                    content = json.load(file)
                self._names, self._redirects, self._seen = content["names"], content["redirects"], seen
        except (OSError, ValueError):
            return


def patch(socket: ModuleType, names_file: str, pod_ip: str) -> None:
    names = Names(names_file, pod_ip)
    _patch_lookups(socket, names, pod_ip)
    _patch_methods(socket, names, pod_ip)


def _patch_lookups(socket: ModuleType, names: Names, pod_ip: str) -> None:
    real_info, real_name, real_name_ex = socket.getaddrinfo, socket.gethostbyname, socket.gethostbyname_ex

    def getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        if host in (None, "", b"") and flags & socket.AI_PASSIVE and pod_ip and family in (0, socket.AF_INET):
            return list(real_info(pod_ip, port, family, type, proto, flags))
        found = _lookup(names, host)
        if found is None:
            return list(real_info(host, port, family, type, proto, flags))
        if not found or family not in (0, socket.AF_INET):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [entry for ip in found for entry in real_info(ip, port, socket.AF_INET, type, proto, flags)]

    def gethostbyname(hostname: Any) -> str:
        found = _lookup(names, hostname)
        if found is None:
            return str(real_name(hostname))
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return found[0]

    def gethostbyname_ex(hostname: Any) -> Any:
        found = _lookup(names, hostname)
        return real_name_ex(hostname) if not found else (str(hostname), [], found)

    socket.getaddrinfo = getaddrinfo  # type: ignore[attr-defined]  # this is the patch
    socket.gethostbyname = gethostbyname  # type: ignore[attr-defined]  # the same
    socket.gethostbyname_ex = gethostbyname_ex  # type: ignore[attr-defined]  # the same


def _lookup(names: Names, host: Any) -> list[str] | None:
    if isinstance(host, (bytes, bytearray)):
        host = host.decode("ascii", "replace")
    return names.addresses(host) if isinstance(host, str) else None


def _patch_methods(socket: ModuleType, names: Names, pod_ip: str) -> None:
    kind = socket.socket
    real_bind, real_connect, real_connect_ex = kind.bind, kind.connect, kind.connect_ex
    internet = (socket.AF_INET, socket.AF_INET6)

    def bind(self: Any, address: Address) -> None:
        if self.family in internet and isinstance(address, tuple) and pod_ip:
            address = _own_address(socket, self, names, address, pod_ip)
        real_bind(self, address)

    def target(self: Any, address: Address) -> Address:
        if self.family != socket.AF_INET or not isinstance(address, tuple) or len(address) != 2:
            return address
        host, port = address
        found = _lookup(names, host)
        if found:
            host = found[0]
        elif host in _LOCAL and pod_ip and _only_pod_listens(pod_ip, port):
            host = pod_ip
        return (host, names.redirect(host, port)) if isinstance(host, str) else address

    def connect(self: Any, address: Address) -> None:
        real_connect(self, target(self, address))

    def connect_ex(self: Any, address: Address) -> int:
        return int(real_connect_ex(self, target(self, address)))

    kind.bind, kind.connect, kind.connect_ex = bind, connect, connect_ex


def _own_address(socket: ModuleType, sock: Any, names: Names, address: Address, pod_ip: str) -> Address:
    host = address[0]
    if sock.family == socket.AF_INET:
        found = _lookup(names, host)
        return (found[0] if found else pod_ip, *address[1:]) if host in _WILDCARDS or found else address
    if host in ("", "::"):
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        return (f"::ffff:{pod_ip}", *address[1:])
    return address


def _only_pod_listens(pod_ip: str, port: Any) -> bool:
    """By /proc/net/tcp: the pod's address has a listener on `port`, localhost has none."""
    wanted = f"{port:04X}" if isinstance(port, int) else ""
    listening = set()
    try:
        with open("/proc/net/tcp") as table:
            for line in table:
                fields = line.split()
                ip, _, number = fields[1].partition(":")
                if number == wanted and fields[3] == _LISTEN:
                    listening.add(ip)
    except OSError:
        return False
    own = "".join(f"{int(part):02X}" for part in reversed(pod_ip.split(".")))
    return own in listening and not listening & {"0100007F", "00000000"}
