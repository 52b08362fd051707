"""How a process reaches NATS, from the environment (`GRYVIA_NATS_*`).

Everything has a default that works against a plain server on this machine, which is what `gryvia up` starts.
"""

from __future__ import annotations

import ssl
from datetime import timedelta
from typing import Literal

from pydantic import Field, FilePath
from pydantic_settings import BaseSettings, SettingsConfigDict


class BusSettings(BaseSettings):
    """Credentials are read from files, so that no secret is in an environment or a process list. A password file is
    read again at every connection attempt: a rotated secret needs no restart."""

    model_config = SettingsConfigDict(env_prefix="GRYVIA_NATS_", frozen=True)

    url: str = Field(default="nats://127.0.0.1:4222", description="Server, or several separated by commas.")
    user: str = Field(default="", description="User name; its password is in password_file.")
    password_file: FilePath | None = Field(default=None, description="File with the user's password.")
    credentials_file: FilePath | None = Field(default=None, description="NATS .creds file (JWT and key).")
    nkey_file: FilePath | None = Field(default=None, description="File with the user's nkey seed.")
    tls_ca: FilePath | None = Field(default=None, description="CA bundle that signs the server's certificate.")
    tls_cert: FilePath | None = Field(default=None, description="Client certificate.")
    tls_key: FilePath | None = Field(default=None, description="Client key.")
    inbox_prefix: str = Field(
        default="", description="Prefix of reply subjects; empty for _INBOX_<user>, the user's own."
    )
    replicas: int = Field(default=1, ge=1, le=5, description="Copies of each stream in a NATS cluster.")
    storage: Literal["file", "memory"] = Field(default="file", description="Where streams are kept.")
    events_max_age: timedelta = Field(
        default=timedelta(days=7), description="How long events can be read back: seconds, or P7D."
    )
    timeout: float = Field(default=5.0, gt=0, description="Seconds to wait for an answer of the server.")

    @property
    def servers(self) -> list[str]:
        return [part.strip() for part in self.url.split(",") if part.strip()]

    @property
    def addresses(self) -> list[str]:
        """The servers without what a URL may hold of credentials: for the log."""
        return [server.rpartition("@")[2].removeprefix("nats://") for server in self.servers]

    @property
    def inbox(self) -> str:
        """Where answers come in. Each user may listen below its own prefix only."""
        return self.inbox_prefix or inbox_of(self.user)

    def password(self) -> str:
        return self.password_file.read_text().strip() if self.password_file else ""

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for a plain connection."""
        if self.tls_ca is None and self.tls_cert is None:
            return None
        context = ssl.create_default_context(cafile=self.tls_ca)
        if self.tls_cert is not None:
            context.load_cert_chain(self.tls_cert, self.tls_key)
        return context


def inbox_of(user: str) -> str:
    """The prefix of a user's reply subjects; NATS' own default without a user."""
    return f"_INBOX_{user}" if user else "_INBOX"
