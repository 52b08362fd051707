"""Who we are to the API server: the Authorization header of each request, kept fresh.

Tokens rotate (a projected service account token is replaced on disk about hourly, a plugin's expires), so a header is
asked for with every request and `renew` is called after a 401. kubernetes_asyncio serves for the exec and OIDC plugins
of a kubeconfig and is imported for nothing else: the import alone costs 39 MB and 0.7 s, and a cluster's own services
never need it.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Protocol

from gryvia_common.clock import Clock
from gryvia_common.errors import Terminal, Transient

TOKEN_FILE_AGE = 60.0
PLUGIN_AGE = 600.0
PLUGIN_TIMEOUT = 30.0


class Credentials(Protocol):
    """`header` is the value of Authorization, None for none. `renew`: the last one was refused."""

    async def header(self) -> str | None: ...

    def renew(self) -> None: ...


class Fixed:
    """A token or password that stands in the kubeconfig itself, or none at all (client certificate, no
    authentication)."""

    def __init__(self, header: str | None = None) -> None:
        self._header = header

    @classmethod
    def basic(cls, username: str, password: str) -> Fixed:
        return cls("Basic " + base64.b64encode(f"{username}:{password}".encode()).decode())

    async def header(self) -> str | None:
        return self._header

    def renew(self) -> None:
        return


class TokenFile:
    """A token in a file that somebody else replaces; read again each minute and after a refusal."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._header = ""
        self._read_at = float("-inf")

    async def header(self) -> str | None:
        if self._clock.monotonic() - self._read_at >= TOKEN_FILE_AGE:
            self._header = f"Bearer {self._read()}"
            self._read_at = self._clock.monotonic()
        return self._header

    def renew(self) -> None:
        self._read_at = float("-inf")

    def _read(self) -> str:
        try:
            return self._path.read_text().strip()
        except OSError as error:
            raise Transient(f"token file {self._path}: {error.strerror}") from error


class Plugin:
    """An exec or auth-provider user of a kubeconfig, run by kubernetes_asyncio. Its answer is used for ten minutes or
    until it is refused. The library reads a plugin's output streams one after the other, so one that floods stderr
    never ends: hence the timeout."""

    def __init__(self, kubeconfig: str, context: str | None, clock: Clock) -> None:
        self._kubeconfig = kubeconfig
        self._context = context
        self._clock = clock
        self._header: str | None = None
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()
        self.client_certificate: tuple[str, str] | None = None

    async def header(self) -> str | None:
        async with self._asking:
            if self._clock.monotonic() - self._asked_at >= PLUGIN_AGE:
                await self._ask()
                self._asked_at = self._clock.monotonic()
            return self._header

    def renew(self) -> None:
        self._asked_at = float("-inf")

    async def _ask(self) -> None:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config import ConfigException, load_kube_config

        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_TIMEOUT):
                await load_kube_config(self._kubeconfig, self._context, configuration)
        except TimeoutError as error:
            raise Transient(
                f"kubeconfig {self._kubeconfig}: its credential plugin did not end in {PLUGIN_TIMEOUT:.0f} s"
            ) from error
        except (ConfigException, OSError) as error:
            raise Terminal(
                f"kubeconfig {self._kubeconfig}: its credential plugin failed: {error}", reason="Unauthorized"
            ) from error
        self._header = configuration.api_key.get("BearerToken")
        if configuration.cert_file and configuration.key_file:
            self.client_certificate = (configuration.cert_file, configuration.key_file)
