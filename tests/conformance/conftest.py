"""The same tests against devcluster and against a real API server.

target      which of the two: url, token, kubeconfig, and how to make it forget its history. The real one is there under
            `make test-kube` (GRYVIA_TEST_KUBE=1) only, and a missing program is a failure then
api         a bare HTTP client of it
namespace   of the test's own
talk        a conversation that has to be, to the letter, the one recorded from a real server (recorded/<test>.json)
node        a simulated node
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.realcluster import RealCluster
from tools.realcluster.http import Http, Json
from tools.realcluster.node import SimulatedNode
from tools.realcluster.recording import Conversation, compare, differences

from .widgets import WIDGETS, establish, until, widget

RECORDED = Path(__file__).parent / "recorded"
WITH_REAL = os.environ.get("GRYVIA_TEST_KUBE") == "1"
HISTORY = 400
KNOWN_FILE = Path(__file__).parent / "known_differences.json"
KNOWN: dict[str, list[str]] = json.loads(KNOWN_FILE.read_text())


@dataclass(frozen=True, slots=True)
class Target:
    """An API server with its controllers and without a node."""

    name: str
    url: str
    token: str
    kubeconfig: Path
    ca: Path | None
    forget: Callable[[], None]

    @property
    def real(self) -> bool:
        return self.name == "real"

    def http(self, user_agent: str = "conformance/1") -> Http:
        return Http(self.url, self.token, self.ca, user_agent=user_agent)


def _devcluster(home: Path) -> Iterator[Target]:
    config = home / "kubeconfig"
    command = [sys.executable, "-m", "gryvia_devcluster", "--data", str(home / "data"), "--kubeconfig", str(config)]
    command += ["--no-node", "--history", str(HISTORY)]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        found = re.match(r"Serving on (http://127\.0\.0\.1:\d+)", process.stdout.readline())
        assert found, (home / "log").read_text()
        url, token = found[1], (home / "data" / "token").read_text().strip()
        yield Target("devcluster", url, token, config, None, lambda: _overflow(url, token))
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    assert "Traceback" not in (home / "log").read_text(), (home / "log").read_text()


def _overflow(url: str, token: str) -> None:
    """As many changes as the history holds, and one: what devcluster has instead of compaction."""
    path = f"{url}/apis/example.com/v1/namespaces/default/widgets"
    headers = {"Authorization": f"Bearer {token}"}

    def send(method: str, path: str, body: Json | None, type: str) -> None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(path, data, {**headers, "Content-Type": type}, method=method)
        urllib.request.urlopen(request, timeout=10).close()

    send("POST", path, widget("overflow"), "application/json")
    for number in range(HISTORY + 1):
        label = {"metadata": {"labels": {"number": str(number)}}}
        send("PATCH", f"{path}/overflow", label, "application/merge-patch+json")
    send("DELETE", f"{path}/overflow", None, "application/json")


def _real(home: Path) -> Iterator[Target]:
    # Lists of an old version come from the server's memory else, which nothing makes forget.
    flags = ["--feature-gates=ListFromCacheSnapshot=false"]
    with RealCluster(home, api_flags=flags) as cluster:
        yield Target("real", cluster.url, cluster.token, cluster.kubeconfig, cluster.ca, cluster.compact)


@pytest.fixture(scope="session", params=["devcluster", *(["real"] if WITH_REAL else [])])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    home = tmp_path_factory.mktemp(request.param)
    for target in _real(home) if request.param == "real" else _devcluster(home):
        asyncio.run(_install(target))
        yield target


async def _install(target: Target) -> None:
    async with target.http() as api:
        await establish(api, WIDGETS)


@pytest.fixture
async def api(target: Target) -> AsyncIterator[Http]:
    async with target.http() as api:
        yield api


@pytest.fixture
async def namespace(api: Http) -> str:
    created = await api.ok("POST", "/api/v1/namespaces", {"metadata": {"generateName": "conf-"}})
    name: str = created["metadata"]["name"]
    for path in ("serviceaccounts/default",):

        async def there(path: str = path) -> bool:
            return (await api("GET", f"/api/v1/namespaces/{name}/{path}")).code == 200

        await until(there)
    return name


@pytest.fixture
async def talk(
    api: Http, namespace: str, target: Target, request: pytest.FixtureRequest
) -> AsyncIterator[Conversation]:
    conversation = Conversation(api, namespace)
    yield conversation
    test = re.sub(r"\[(devcluster|real)-?(.*)\]", r"-\2", request.node.name.removeprefix("test_")).strip("-]")
    file = f"{request.path.stem.removeprefix('test_conf_')}-{re.sub(r'[^A-Za-z0-9_.-]+', '_', test)}.json"
    if os.environ.get("GRYVIA_RECORD") == "known" and not target.real:
        found = differences(json.loads((RECORDED / file).read_text()), conversation.turns())
        KNOWN.pop(file, None)
        if found:
            KNOWN[file] = sorted(found)
        KNOWN_FILE.write_text(json.dumps(KNOWN, indent=1, sort_keys=True) + "\n")
        return
    compare(conversation.turns(), RECORDED / file, real=target.real, known=frozenset(KNOWN.get(file, ())))


@pytest.fixture
async def node(api: Http) -> AsyncIterator[SimulatedNode]:
    async with SimulatedNode(api) as node:
        yield node
