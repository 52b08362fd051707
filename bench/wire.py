"""Every request on its way to an API server that keeps no account of them: a relay that reads the request lines as they pass.

For plain HTTP and for counting only: a body with a request line at the beginning of a line would be counted too, and JSON has none.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

_REQUEST = re.compile(rb"^(GET|POST|PUT|PATCH|DELETE) (\S+) HTTP/1\.1\r?$", re.MULTILINE)
_CHUNK = 2**16


class Wire:
    """`requests`: method and path with query, so often."""

    def __init__(self, host: str, port: int) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self._to = host, port

    @classmethod
    @asynccontextmanager
    async def before(cls, url: str, kubeconfig: Path) -> AsyncIterator[tuple[Wire, Path]]:
        """A relay before the server at `url`, and a copy of its kubeconfig that leads through it."""
        place = urlsplit(url)
        wire = cls(place.hostname or "127.0.0.1", place.port or 80)
        connections: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(wire._connected(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        through = kubeconfig.with_name("kubeconfig-wire")
        here = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        through.write_text(kubeconfig.read_text().replace(url, here))
        try:
            yield wire, through
        finally:
            server.close()
            ending = list(connections)
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(*self._to)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._relay(reader, there_writer, count=True))
                group.create_task(self._relay(there_reader, writer, count=False))
        except* ConnectionError:
            pass  # one side has hung up, and with it the other
        finally:
            writer.close()

    async def _relay(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, *, count: bool) -> None:
        last = b""
        while data := await source.read(_CHUNK):
            if count:
                *lines, last = (last + data).split(b"\n")
                for found in _REQUEST.finditer(b"\n".join(lines)):
                    self.requests[found[1].decode(), found[2].decode()] += 1
            to.write(data)
            await to.drain()
        with contextlib.suppress(OSError):
            to.close()
