"""Where the API server is and how it is reached: from a kubeconfig or from inside a cluster.

Read by hand (clusters, users, contexts, inline data or files) because that is forty lines, and the library that would
do it costs 39 MB a process; what needs more than reading, the plugins, stays with the library (credentials.py).
Certificates are read once, at connect.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic_settings import BaseSettings, SettingsConfigDict

from gryvia_common.clock import Clock
from gryvia_common.errors import Terminal
from gryvia_common.kube.credentials import Credentials, Fixed, Plugin, TokenFile
from gryvia_common.kube.objects import Json

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeSettings(BaseSettings):
    """Which API server. Neither set: the pod's service account when there is one, else $KUBECONFIG, else
    ~/.kube/config."""

    model_config = SettingsConfigDict(env_prefix="GRYVIA_KUBE_", frozen=True)

    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """`tls` None: as the URL's scheme says, with the system's CAs. `hostname` replaces the one TLS checks."""

    server: str
    credentials: Credentials
    tls: ssl.SSLContext | None = None
    hostname: str | None = None
    proxy: str | None = None


async def find_access(settings: KubeSettings, clock: Clock) -> Access:
    """Terminal with a sentence for a person when what is configured is not there or makes no sense."""
    if settings.kubeconfig is None and settings.context is None and (SERVICE_ACCOUNT / "token").exists():
        return _in_cluster(clock)
    path = str(settings.kubeconfig or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    return await _from_kubeconfig(path, settings.context, clock)


def _in_cluster(clock: Clock) -> Access:
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise Terminal(
            "a service account is mounted but KUBERNETES_SERVICE_HOST and _PORT are not set: set GRYVIA_KUBE_KUBECONFIG"
        )
    if ":" in host:
        host = f"[{host}]"
    tls = ssl.create_default_context(cafile=str(SERVICE_ACCOUNT / "ca.crt"))
    return Access(f"https://{host}:{port}", TokenFile(SERVICE_ACCOUNT / "token", clock), tls)


async def _from_kubeconfig(path: str, context: str | None, clock: Clock) -> Access:
    config = _read(path)
    name = context or config.get("current-context") or ""
    chosen = _named(config, "contexts", "context", name, path)
    cluster = _named(config, "clusters", "cluster", str(chosen.get("cluster")), path)
    user = _named(config, "users", "user", str(chosen["user"]), path) if chosen.get("user") else {}
    server = str(cluster.get("server") or "").rstrip("/")
    if not server:
        raise Terminal(f"kubeconfig {path}: cluster {chosen.get('cluster')!r} has no server")
    credentials = _credentials(user, path, context, clock)
    certificate: tuple[str, str] | None = None
    if isinstance(credentials, Plugin):
        await credentials.header()
        certificate = credentials.client_certificate
    return Access(
        server,
        credentials,
        _tls(cluster, user, certificate, path) if server.startswith("https:") else None,
        cluster.get("tls-server-name"),
        cluster.get("proxy-url"),
    )


def _read(paths: str) -> Json:
    """One kubeconfig of the files in `paths` (separated as $PATH is): the first to name something wins, as for
    kubectl."""
    merged: Json = {"clusters": [], "users": [], "contexts": []}
    found = False
    for path in paths.split(os.pathsep):
        if not path or not Path(path).is_file():
            continue
        found = True
        try:
            config = yaml.safe_load(Path(path).read_text()) or {}
        except (OSError, yaml.YAMLError) as error:
            raise Terminal(f"kubeconfig {path}: cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise Terminal(f"kubeconfig {path}: is not a kubeconfig")
        for section in ("clusters", "users", "contexts"):
            merged[section] += [{**entry, "_folder": str(Path(path).parent)} for entry in config.get(section) or []]
        merged.setdefault("current-context", config.get("current-context"))
    if not found:
        raise Terminal(f"no kubeconfig at {paths}: start a cluster, or point GRYVIA_KUBE_KUBECONFIG at its kubeconfig")
    return merged


def _named(config: Json, section: str, field: str, name: str, path: str) -> Json:
    for entry in config[section]:
        if entry.get("name") == name:
            return {**(entry.get(field) or {}), "_folder": entry["_folder"]}
    known = ", ".join(repr(entry.get("name")) for entry in config[section]) or "none"
    raise Terminal(f"kubeconfig {path}: {field} {name!r} is not in it (it has: {known})")


def _credentials(user: Json, path: str, context: str | None, clock: Clock) -> Credentials:
    if "exec" in user or "auth-provider" in user:
        return Plugin(path, context, clock)
    if user.get("tokenFile"):
        return TokenFile(Path(user["_folder"]) / user["tokenFile"], clock)
    if user.get("token"):
        return Fixed(f"Bearer {user['token']}")
    if user.get("username"):
        return Fixed.basic(str(user["username"]), str(user.get("password") or ""))
    return Fixed()


def _tls(cluster: Json, user: Json, certificate: tuple[str, str] | None, path: str) -> ssl.SSLContext:
    try:
        authority = _content(cluster, "certificate-authority")
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate:
            context.load_cert_chain(*certificate)
        else:
            _load_client_certificate(context, _content(user, "client-certificate"), _content(user, "client-key"))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError, binascii.Error a ValueError
        raise Terminal(f"kubeconfig {path}: a certificate or key in it cannot be used: {error}") from error
    return context


def _content(entry: Json, field: str) -> bytes | None:
    """PEM bytes of `<field>-data` (base64) or of the file in `<field>`, relative to its kubeconfig."""
    if entry.get(f"{field}-data"):
        return base64.b64decode(entry[f"{field}-data"])
    return (Path(entry["_folder"]) / entry[field]).read_bytes() if entry.get(field) else None


def _load_client_certificate(context: ssl.SSLContext, certificate: bytes | None, key: bytes | None) -> None:
    """The ssl module takes client certificates from files only; the key's file lives as long as this call, readable by
    us alone."""
    if not certificate or not key:
        return
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        context.load_cert_chain(file.name)
