"""An API server that has just come up denies everything until it knows the roles. A denial counts when the server is ready."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gryvia_common.errors import Terminal, Transient
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import Access
from gryvia_common.kube.credentials import Fixed
from gryvia_common.kube.resources import PODS
from gryvia_common.kube.transport import READY_PAUSE, Transport

POD = {"metadata": {"namespace": "ns", "name": "p"}}


class Slept:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def denial(what: str) -> web.Response:
    message = f'pods is forbidden: User "system:serviceaccount:gryvia:gryvia-jobs" cannot {what}'
    body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}
    return web.json_response(body, status=403)


@asynccontextmanager
async def served(
    clock: Slept, ready: Callable[[], int], granted: Callable[[], bool]
) -> AsyncIterator[tuple[Kube, list[tuple[str, str]], list[int]]]:
    """`ready`: the code of /readyz, `granted`: whether the roles are known."""
    asked: list[tuple[str, str]] = []
    seen: list[int] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        asked.append((request.method, request.path))
        if request.path == "/readyz":
            return denial('get path "/readyz"') if (code := ready()) == 403 else web.Response(status=code)
        return web.json_response(POD) if granted() else denial('create resource "pods"')

    runner = web.ServerRunner(web.Server(answer, access_log=None), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    access = Access(f"http://127.0.0.1:{runner.addresses[0][1]}", Fixed())

    def observe(verb: str, plural: str, code: int, seconds: float) -> None:
        seen.append(code)

    kube = Kube(Transport(access, user_agent="gryvia-test", clock=clock, observe=observe))
    try:
        yield kube, asked, seen
    finally:
        await kube.close()
        await runner.cleanup()


async def test_a_denial_of_a_server_that_is_not_ready_is_an_outage() -> None:
    async with served(Slept(), lambda: 500, lambda: False) as (kube, _, seen):
        with pytest.raises(Transient, match="not ready"):
            await kube.create(PODS, POD)
    assert seen == [0]


async def test_what_was_denied_before_the_roles_were_known_is_done_once_they_are() -> None:
    clock = Slept()

    def known() -> bool:
        return clock.seconds >= 2 * READY_PAUSE

    async with served(clock, lambda: 200 if known() else 403, known) as (kube, asked, _):
        assert await kube.create(PODS, POD) == POD
    assert asked.count(("POST", "/api/v1/namespaces/ns/pods")) == 3


@pytest.mark.parametrize("ready", [200, 403, 404])
async def test_a_denial_that_lasts_is_believed(ready: int) -> None:
    clock = Slept()
    async with served(clock, lambda: ready, lambda: False) as (kube, asked, _):
        with pytest.raises(Terminal) as caught:
            await kube.create(PODS, POD)
    assert caught.value.reason == "Forbidden"
    assert len(asked) <= 13
    assert clock.seconds <= 3.0
