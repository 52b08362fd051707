"""Loopback addresses for pods and services: one block of 127.0.0.0/8 for each devcluster on the machine.

A block 127.n.0.0/16 is claimed by holding a UDP port on its last address, so that two clusters (two test runs, say) never
share one; the kernel gives it back when the process ends. Linux answers on all of 127.0.0.0/8 without configuration; where
the machine does not (macOS), everything is 127.0.0.1 and ports of different pods can collide.
"""

from __future__ import annotations

import socket
from pathlib import Path

_CLAIM_PORT = 47_010
_FIRST, _LAST = 32, 127
_SERVICES = 128  # third octet from which addresses belong to services


class NoBlock(Exception):
    """Every block of loopback addresses is taken by another devcluster."""


class AddressBlock:
    """Use as a context manager: the block is held while it is open."""

    def __init__(self, memory: Path | None = None) -> None:
        """`memory` is a file with the block of the last time, tried first: services keep their addresses for life."""
        self._memory = memory
        self._claim: socket.socket | None = None
        self._network = ""
        self._used: set[str] = set()
        self._next = {False: 1, True: 1}

    def __enter__(self) -> AddressBlock:
        for second in self._candidates():
            claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                claim.bind((f"127.{second}.255.254", _CLAIM_PORT))
            except OSError as error:
                claim.close()
                if error.errno == 49 or error.strerror == "Can't assign requested address":
                    return self
                continue
            self._claim, self._network = claim, f"127.{second}"
            if self._memory is not None:
                self._memory.write_text(str(second))
            return self
        raise NoBlock(f"no free block of loopback addresses from 127.{_FIRST}.0.0 to 127.{_LAST}.0.0")

    def __exit__(self, *_: object) -> None:
        if self._claim is not None:
            self._claim.close()

    def _candidates(self) -> list[int]:
        blocks = list(range(_FIRST, _LAST + 1))
        if self._memory is not None and self._memory.exists():
            last = self._memory.read_text()
            blocks.sort(key=lambda second: str(second) != last)
        return blocks

    @property
    def node(self) -> str:
        return f"{self._network}.0.1" if self._network else "127.0.0.1"

    def take_pod(self) -> str:
        return self._take(service=False)

    def take_service(self) -> str:
        return self._take(service=True)

    def owns(self, address: str) -> bool:
        return bool(self._network) and address.startswith(f"{self._network}.")

    def reserve(self, address: str) -> None:
        self._used.add(address)

    def release(self, address: str) -> None:
        self._used.discard(address)

    def _take(self, service: bool) -> str:
        """The next free address, so that one just released is not handed out again at once."""
        if not self._network:
            return "127.0.0.1"
        for _ in range(_SERVICES * 254):
            number = self._next[service]
            self._next[service] = number % (_SERVICES * 254 - 254) + 1
            third, fourth = divmod(number, 254)
            address = f"{self._network}.{third + (_SERVICES if service else 0)}.{fourth + 1}"
            if address not in self._used and address != self.node:
                self._used.add(address)
                return address
        raise NoBlock(f"all addresses of {self._network}.0.0/16 are in use")
