"""An answer's body up to a bound, which holds before and after decompression.

The client asks for no compression and undoes gzip and deflate itself, a bounded piece at a time: a library that decompresses what has
arrived turns some kilobytes into gigabytes before anybody can count them.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from gryvia_common.errors import Terminal

PIECE = 16 * 1024


async def read_bounded(pieces: AsyncIterator[bytes], encoding: str, limit: int) -> tuple[bytes, bool]:
    """The first `limit` bytes of the decoded body, and whether there was more, or what came could not be decoded to the end.
    Raises Terminal for an encoding that was not asked for and is not known."""
    unpack = _inflater(encoding)
    body, raw = bytearray(), 0
    async for piece in pieces:
        raw += len(piece)
        try:
            while piece and len(body) <= limit:
                plain, piece = unpack(piece, limit + 1 - len(body))
                body += plain
        except zlib.error:
            return bytes(body[:limit]), True
        if len(body) > limit or raw > limit + PIECE:
            return bytes(body[:limit]), True
    return bytes(body), False


class _Inflate:
    """`wbits` as zlib has them; raw deflate is tried when a zlib stream was announced and is none."""

    def __init__(self, wbits: int, fallback: int | None = None) -> None:
        self._stream, self._fallback = zlib.decompressobj(wbits), fallback

    def __call__(self, piece: bytes, most: int) -> tuple[bytes, bytes]:
        if self._stream.eof:
            return b"", b""
        try:
            plain = self._stream.decompress(piece, most)
        except zlib.error:
            if self._fallback is None:
                raise
            self._stream, self._fallback = zlib.decompressobj(self._fallback), None
            plain = self._stream.decompress(piece, most)
        self._fallback = None
        return plain, self._stream.unconsumed_tail


class _Plain:
    def __call__(self, piece: bytes, most: int) -> tuple[bytes, bytes]:
        return piece[:most], piece[most:]


def _inflater(encoding: str) -> _Inflate | _Plain:
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Inflate(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Inflate(zlib.MAX_WBITS, -zlib.MAX_WBITS)
        case other:
            raise Terminal(f"the answer is encoded as {other[:40]!r}, though no encoding was asked for")
