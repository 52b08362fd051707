"""pods/log over HTTP, with the node's files in the test's hands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.api.server import ApiServer
from gryvia_devcluster.bootstrap import bootstrap

MERGE: Any = "application/merge-patch+json"


class Files:
    """A PodLogs whose container ends when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done = True

    def path(self, pod: dict[str, Any], container: str, *, previous: bool = False) -> Path:
        return self.folder / f"{container}{'.previous' if previous else ''}.log"

    def ended(self, pod: dict[str, Any], container: str) -> bool:
        return self.done


class Pod:
    def __init__(self, files: Files, session: aiohttp.ClientSession, url: str) -> None:
        self.files = files
        self._session = session
        self._url = url

    def write(self, text: str, container: str = "c") -> None:
        with (self.files.folder / f"{container}.log").open("a") as file:
            file.write(text)

    def open(self, query: str) -> Any:
        return self._session.get(f"{self._url}?{query}")

    async def __call__(self, query: str = "") -> tuple[int, str]:
        async with self.open(query) as response:
            return response.status, await response.text()


@pytest.fixture
async def pod(tmp_path: Path) -> AsyncIterator[Pod]:
    registry, files = Registry(), Files(tmp_path)
    bootstrap(registry)
    rt = registry.resource("", "pods")
    containers = [{"name": name, "image": "i:1"} for name in ("c", "waiting")]
    registry.create(rt, "default", {"metadata": {"name": "p"}, "spec": {"containers": containers}})
    running = {"name": "c", "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1}}}
    waiting = {"name": "waiting", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    status = {"status": {"containerStatuses": [running, waiting]}}
    registry.patch(rt, "default", "p", status, MERGE, subresource="status")
    server = ApiServer(registry, token="t", logs=lambda: files)
    port = await server.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:
        yield Pod(files, session, f"http://127.0.0.1:{port}/token/t/api/v1/namespaces/default/pods/p/log")
    await server.stop()


async def test_the_whole_log_its_end_and_its_first_bytes(pod: Pod) -> None:
    pod.write("one\ntwo\nthree\n")
    assert await pod("container=c") == (200, "one\ntwo\nthree\n")
    assert await pod("container=c&tailLines=2") == (200, "two\nthree\n")
    assert await pod("container=c&tailLines=0") == (200, "")
    assert await pod("container=c&limitBytes=5") == (200, "one\nt")


async def test_following_ends_with_the_container(pod: Pod) -> None:
    pod.files.done = False
    pod.write("old\n")
    async with asyncio.timeout(5), pod.open("container=c&follow=true&tailLines=0") as response:
        pod.write("new\n")
        assert await response.content.readline() == b"new\n"
        pod.write("last, without a line end")
        pod.files.done = True
        assert await response.content.read() == b"last, without a line end"


async def test_since_goes_by_the_last_write(pod: Pod) -> None:
    pod.write("old\n")
    os.utime(pod.files.folder / "c.log", (1_000_000_000, 1_000_000_000))
    assert await pod("container=c&sinceSeconds=60") == (200, "")
    assert await pod("container=c&sinceTime=2001-01-01T00:00:00Z") == (200, "old\n")
    assert await pod("container=c&timestamps=true") == (200, "2001-09-09T01:46:40.000000Z old\n")
    assert (await pod("container=c&sinceTime=yesterday"))[0] == 422


async def test_the_previous_container_has_its_own_log(pod: Pod) -> None:
    pod.write("now\n")
    pod.write("before\n", "c.previous")
    assert await pod("container=c&previous=true") == (200, "before\n")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "a container name must be specified for pod p, choose one of: [c waiting]"),
        ("container=none", "container none is not valid for pod p"),
        ("container=waiting", 'container \\"waiting\\" in pod \\"p\\" is waiting to start: ImagePullBackOff'),
        ("container=waiting&previous=true", 'previous terminated container \\"waiting\\" in pod \\"p\\" not found'),
        ("container=c&tailLines=x", "strconv.ParseInt: parsing"),
    ],
)
async def test_what_cannot_be_shown_says_why(pod: Pod, query: str, message: str) -> None:
    code, answer = await pod(query)
    assert code == 400
    assert message in answer
