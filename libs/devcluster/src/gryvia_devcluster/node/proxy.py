"""The proxies behind cluster addresses: TCP, in this process, over the ready endpoints in turn.

A service port is a listener on the service's loopback address. Ports the node may not open (below 1024 without root) get
another number on the same address, which the Python hook of pods and nobody else knows. UDP is not proxied. An endpoint
that refuses is passed over for the next one; with none left, the connection is closed, as a REJECT rule would.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from gryvia_devcluster.node.follow import Key, key_of
from gryvia_devcluster.types import Json

log = logging.getLogger(__name__)

Backend = tuple[str, int]
_CHUNK = 1 << 16


def backends(service: Json, port: Json, endpoints: Json | None) -> list[Backend]:
    """The ready addresses for one service port, with the port number the endpoints give for its name."""
    found: list[Backend] = []
    for subset in (endpoints or {}).get("subsets") or ():
        for entry in subset.get("ports") or ():
            if entry.get("name", "") == port.get("name", ""):
                found += [(address["ip"], entry["port"]) for address in subset.get("addresses") or ()]
    return found


@dataclass(slots=True)
class Listener:
    """One service port. `backends` may be replaced while it serves."""

    address: str
    port: int
    backends: list[Backend] = field(default_factory=list)
    bound: int = 0
    server: asyncio.Server | None = None
    _turn: Iterator[int] = field(default_factory=itertools.count)

    async def open(self) -> None:
        for port in (self.port, 0):
            try:
                self.server = await asyncio.start_server(self._serve, self.address, port)
            except OSError as error:
                log.warning("service port not opened", extra={"port": port, "error": str(error)})
            else:
                self.bound = self.server.sockets[0].getsockname()[1]
                return

    def close(self) -> None:
        if self.server is not None:
            self.server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connected = await self._connect()
            if connected is None:
                writer.transport.abort()
                return
            back_reader, back_writer = connected
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_pump(reader, back_writer))
                    group.create_task(_pump(back_reader, writer))
            finally:
                back_writer.close()
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        choices = list(self.backends)
        start = next(self._turn)
        for offset in range(len(choices)):
            host, port = choices[(start + offset) % len(choices)]
            with suppress(OSError):
                return await asyncio.open_connection(host, port)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of input, then pass the end on; a broken connection ends both directions by their own EOFs."""
    with suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()


class ServiceProxies:
    """The listeners of all services. Changes are queued and carried out by `run` one after another."""

    def __init__(self, redirects_changed: Callable[[], None]) -> None:
        self._changed = redirects_changed
        self._listeners: dict[tuple[Key, str, int], Listener] = {}
        self._wanted: asyncio.Queue[Listener] = asyncio.Queue()

    @property
    def redirects(self) -> dict[str, int]:
        moved = [each for each in self._listeners.values() if each.bound not in (0, each.port)]
        return {f"{each.address}:{each.port}": each.bound for each in moved}

    def put(self, service: Json, endpoints: Json | None) -> None:
        key, address = key_of(service), service["spec"]["clusterIP"]
        ports = [p for p in service["spec"].get("ports") or () if p.get("protocol", "TCP") == "TCP"]
        kept = {(key, address, port["port"]) for port in ports}
        for known in [known for known in self._listeners if known[0] == key and known not in kept]:
            self._listeners.pop(known).close()
        for port in ports:
            place = (key, address, port["port"])
            if place not in self._listeners:
                self._listeners[place] = Listener(address, port["port"])
                self._wanted.put_nowait(self._listeners[place])
            self._listeners[place].backends = backends(service, port, endpoints)

    def remove(self, key: Key) -> None:
        for known in [known for known in self._listeners if known[0] == key]:
            self._listeners.pop(known).close()

    async def run(self) -> None:
        while True:
            listener = await self._wanted.get()
            await listener.open()
            if listener not in self._listeners.values():
                listener.close()
            elif listener.bound != listener.port:
                self._changed()

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()
