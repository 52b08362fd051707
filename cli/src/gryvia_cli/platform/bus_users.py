"""Who may do what on the embedded platform's NATS: every service is a user of its own, and so is who reads events.

Passwords are random, new at each start, and in files that only their owner can read: in no argument, no environment, no log. The
permissions are those that `deploy/nats/permissions.conf` has for a cluster.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from secrets import token_hex

from gryvia_cli.platform.services import SERVICES
from gryvia_common.bus.permissions import ADMIN, READER, Permissions, authorization, reader_permissions
from gryvia_common.bus.settings import BusSettings


def make_users(folder: Path) -> str:
    """Writes a new password file for each user; the configuration that makes nats-server know them."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    # A letter first: nats-server would take digits for a number.
    passwords = {user: f"p{token_hex(24)}" for user in users()}
    for user, password in passwords.items():
        _write_private(folder / user, password)
    return authorization(users(), lambda user: f'"{passwords[user]}"')


def users() -> dict[str, Permissions | None]:
    granted = {service.name: import_module(f"{service.package}.access").PERMISSIONS for service in SERVICES}
    return {ADMIN: None, **granted, READER: reader_permissions()}


def settings_of(folder: Path, url: str, user: str) -> BusSettings:
    """How `user` connects."""
    return BusSettings(url=url, user=user, password_file=folder / user)


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{text}\n")
