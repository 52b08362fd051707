"""Which API server and as whom: kubeconfig files as people have them, and what is said when one cannot be used."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gryvia_common.clock import SystemClock
from gryvia_common.errors import Terminal, Transient
from gryvia_common.kube import config
from gryvia_common.kube.config import KubeSettings, find_access
from gryvia_common.kube.credentials import TokenFile


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path):
    for name in ("KUBECONFIG", "GRYVIA_KUBE_KUBECONFIG", "GRYVIA_KUBE_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", tmp_path / "no-service-account")


def kubeconfig(path: Path, *, user: object = None, cluster: object = None, name: str = "one") -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": name,
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "clusters": [{"name": name, "cluster": cluster or {"server": f"http://{name}:1/"}}],
                "users": [{"name": name, "user": user or {}}],
            }
        )
    )
    return path


async def access(**settings):
    return await find_access(KubeSettings(**settings), SystemClock())


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({}, None),
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic " + base64.b64encode(b"u:p").decode()),
        ({"tokenFile": "token"}, "Bearer from-file"),
    ],
)
async def test_users(user, header, tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    found = await access(kubeconfig=kubeconfig(tmp_path / "config", user=user))
    assert found.server == "http://one:1"
    assert await found.credentials.header() == header


async def test_an_exec_plugin_is_asked_once_and_again_after_a_refusal(tmp_path):
    count = tmp_path / "count"
    plugin = tmp_path / "plugin"
    answer = json.dumps(
        {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-plugin"}}
    )
    plugin.write_text(f"#!/bin/sh\necho x >> {count}\necho '{answer}'\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
    found = await access(kubeconfig=kubeconfig(tmp_path / "config", user=user))
    assert [await found.credentials.header() for _ in range(3)] == ["Bearer from-plugin"] * 3
    assert count.read_text().count("x") == 1
    found.credentials.renew()
    await found.credentials.header()
    assert count.read_text().count("x") == 2


async def test_a_plugin_that_fails_is_one_sentence(tmp_path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    with pytest.raises(Terminal, match="credential plugin failed"):
        await access(kubeconfig=kubeconfig(tmp_path / "config", user=user))


async def test_of_several_files_the_first_to_name_something_wins(tmp_path, monkeypatch):
    first = kubeconfig(tmp_path / "first", name="one")
    second = kubeconfig(tmp_path / "second", name="two")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'absent'}:{second}")
    assert (await access()).server == "http://one:1"
    assert (await access(context="two")).server == "http://two:1"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no kubeconfig at"),
        ("{", "cannot be read"),
        ("- 1", "is not a kubeconfig"),
        ("{}", "context ''.*it has: none"),
        ("{current-context: x, contexts: [{name: y}]}", "context 'x' is not in it .it has: 'y'"),
        ("{current-context: x, contexts: [{name: x, context: {cluster: c}}]}", "cluster 'c' is not in it"),
        (
            "{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c}]}",
            "cluster 'c' has no server",
        ),
    ],
)
async def test_what_cannot_be_used_is_said_in_one_sentence(content, says, tmp_path):
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Terminal, match=says):
        await access(kubeconfig=path)


async def test_a_certificate_that_is_none_is_said_in_one_sentence(tmp_path):
    cluster = {"server": "https://c", "certificate-authority-data": base64.b64encode(b"nonsense").decode()}
    with pytest.raises(Terminal, match="certificate or key"):
        await access(kubeconfig=kubeconfig(tmp_path / "config", cluster=cluster))


async def test_tls_checks_the_server_unless_told_not_to(tmp_path):
    checked = await access(kubeconfig=kubeconfig(tmp_path / "a", cluster={"server": "https://c"}))
    assert checked.tls is not None
    assert checked.tls.verify_mode == ssl.CERT_REQUIRED
    careless = {"server": "https://c", "insecure-skip-tls-verify": True, "tls-server-name": "other"}
    unchecked = await access(kubeconfig=kubeconfig(tmp_path / "b", cluster=careless))
    assert unchecked.tls is not None
    assert unchecked.tls.verify_mode == ssl.CERT_NONE
    assert unchecked.hostname == "other"


async def test_inside_a_cluster_the_service_account_is_used(tmp_path, monkeypatch):
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("pod-token")
    (account / "ca.crt").write_bytes(self_signed(tmp_path))
    monkeypatch.setattr(config, "SERVICE_ACCOUNT", account)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(Terminal, match="KUBERNETES_SERVICE_HOST"):
        await access()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    found = await access()
    assert found.server == "https://[fd00::1]:443"
    assert await found.credentials.header() == "Bearer pod-token"


def self_signed(folder: Path) -> bytes:
    certificate = folder / "ca.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=ca"]
        + ["-days", "2", "-keyout", str(folder / "key.pem"), "-out", str(certificate)],
        check=True,
        capture_output=True,
    )
    return certificate.read_bytes()


async def test_a_token_file_that_is_away_is_transient(tmp_path):
    with pytest.raises(Transient, match="token"):
        await TokenFile(tmp_path / "absent", SystemClock()).header()


async def test_the_client_library_is_not_imported_without_a_plugin(tmp_path):
    """It costs 39 MB and most of a second in every service."""
    path = kubeconfig(tmp_path / "config", user={"token": "t"})
    program = (
        "import asyncio, sys\n"
        "from gryvia_common.clock import SystemClock\n"
        "from gryvia_common.kube.client import Kube, KubeSettings\n"
        "async def main():\n"
        f"    kube = await Kube.connect(KubeSettings(kubeconfig={str(path)!r}), user_agent='t', clock=SystemClock())\n"
        "    await kube.close()\n"
        "asyncio.run(main())\n"
        "sys.exit('kubernetes_asyncio' in sys.modules)\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    assert await process.wait() == 0
