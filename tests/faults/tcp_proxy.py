"""A TCP proxy in front of NATS or an API server: passes on, stalls (connected, and nothing comes), is slow, or is cut off."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["pass", "stall", "slow", "cut"]
SLOW = 0.05


@dataclass
class TcpProxy:
    """`async with TcpProxy(port)`; `port` is then ours. A change of `mode` by `turn` holds for all connections;
    `in_vain` counts those made to a line that does not pass on."""

    target: int
    port: int = 0
    mode: Mode = "pass"
    in_vain: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> TcpProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.turn("cut")
        self._server.close()
        await asyncio.sleep(0)

    def turn(self, mode: Mode) -> None:
        self.mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode == "cut":
            for writer in list(self._open):
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.in_vain += self.mode in ("cut", "stall")
        if self.mode == "cut":
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, back}
        ways = [asyncio.create_task(self._pump(reader, back)), asyncio.create_task(self._pump(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._open -= {writer, back}
            for end in (writer, back):
                end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                while self.mode == "stall":
                    await self._changed.wait()
                if self.mode == "slow":
                    await asyncio.sleep(SLOW)
                writer.write(data)
                await writer.drain()
