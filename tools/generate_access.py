"""Writes deploy/rbac/ and deploy/nats/ from what each service declares: `python tools/generate_access.py [--check]`.

What a service may do stands beside its code (`gryvia_<name>/access.py`); the files are what an administrator applies. `--check`
writes nothing and fails when a file is not as it would be written, or is there but should not be.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import yaml

from gryvia_cli.platform.services import SERVICES
from gryvia_common.bus.permissions import ADMIN, READER, authorization, reader_permissions
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.access import NAMESPACE, Access, manifests

DEPLOY = Path(__file__).parents[1] / "deploy"
_GENERATED = "Generated from the services' access.py by `make docs`; do not edit. docs/security.md says how to use it."


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("deploy", nargs="?", type=Path, default=DEPLOY)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not up to date")
    arguments = parser.parse_args()
    wanted = {arguments.deploy / name: text for name, text in files().items()}
    present = {path for folder in ("rbac", "nats") for path in (arguments.deploy / folder).glob("*")}
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    surplus = sorted(present - wanted.keys())
    if arguments.check:
        if stale or surplus:
            names = ", ".join(str(path) for path in (*stale, *surplus))
            print(f"not up to date: {names}; run python tools/generate_access.py", file=sys.stderr)
        return 1 if stale or surplus else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[path])
    for path in surplus:
        path.unlink()
    return 0


def files() -> dict[str, str]:
    """Path below deploy/ to content."""
    granted = accesses()
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    users = {
        ADMIN: None,
        **{access.service: access.permissions for access in granted},
        READER: reader_permissions(),
    }
    return {
        "rbac/00-namespace.yaml": _yaml([namespace]),
        **{f"rbac/{access.service}.yaml": _yaml(manifests(access)) for access in granted},
        "nats/permissions.conf": f"# {_GENERATED}\n{authorization(users, password_variable)}",
    }


def accesses() -> list[Access]:
    """Of every service, in the order in which the platform starts them."""
    return [import_module(f"{service.package}.access").access() for service in SERVICES]


def password_variable(user: str) -> str:
    """The variable in nats-server's environment that holds the user's password."""
    return f"$GRYVIA_NATS_{user.upper().replace('-', '_')}_PASSWORD"


def _yaml(documents: list[Json]) -> str:
    return f"# {_GENERATED}\n" + yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=120)


class _Plain(yaml.SafeDumper):
    """Without anchors: what is written twice is read twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


if __name__ == "__main__":
    sys.exit(main())
