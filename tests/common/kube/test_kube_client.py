"""The client against a small HTTP server that does what each test says: verbs on the wire, and what each failure becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gryvia_common.clock import SystemClock
from gryvia_common.errors import Conflict, Gone, GryviaError, Terminal, Transient
from gryvia_common.kube.answers import Expired
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import Access
from gryvia_common.kube.credentials import Fixed, TokenFile
from gryvia_common.kube.resources import JOBS, LEASES, NODES, PODS
from gryvia_common.kube.transport import Request, Transport

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """`handler` answers; `requests` are what came: (method, path with query, headers, body)."""

    def __init__(self) -> None:
        self.handler: Handler = self._unset
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs, dict(request.headers), await request.read()))
        return await self.handler(request)

    async def _unset(self, request: web.Request) -> web.StreamResponse:
        raise AssertionError("the test set no handler")

    def answer(self, code: int, body: object, **headers: str) -> None:
        async def handler(request: web.Request) -> web.StreamResponse:
            if isinstance(body, bytes):
                return web.Response(status=code, body=body, headers=headers, content_type="text/plain")
            return web.json_response(body, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()})

        self.handler = handler


def status(code: int, reason: str, message: str = "", **details: object) -> dict[str, object]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@asynccontextmanager
async def connected(url: str, credentials: Fixed | TokenFile | None = None, observe=None) -> AsyncIterator[Kube]:
    access = Access(url, credentials or Fixed())
    made = Kube(Transport(access, user_agent="gryvia-test", clock=SystemClock(), observe=observe))
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def kube(server: Server) -> AsyncIterator[Kube]:
    async with connected(server.url) as made:
        yield made


POD = {"metadata": {"namespace": "ns", "name": "p"}}


async def test_each_verb_on_the_wire(server, kube):
    server.answer(200, {"metadata": {"name": "p"}})
    await kube.get(PODS, "ns", "p")
    await kube.get(NODES, "", "n")
    await kube.create(PODS, POD)
    await kube.apply(JOBS, {"metadata": {"namespace": "ns", "name": "j"}}, manager="gryvia-jobs")
    await kube.patch(JOBS, "ns", "j", {"status": {}}, subresource="status", manager="gryvia-jobs")
    await kube.delete(PODS, "ns", "p", uid="u1", propagation="Foreground")
    await kube.logs("ns", "p", container="main", tail_lines=0, timestamps=True, since_time="2026-01-01T00:00:00Z")
    wire = [(method, path, headers.get("Content-Type")) for method, path, headers, _ in server.requests]
    assert wire == [
        ("GET", "/api/v1/namespaces/ns/pods/p", None),
        ("GET", "/api/v1/nodes/n", None),
        ("POST", "/api/v1/namespaces/ns/pods", "application/json"),
        (
            "PATCH",
            "/apis/batch/v1/namespaces/ns/jobs/j?fieldManager=gryvia-jobs&force=true",
            "application/apply-patch+yaml",
        ),
        (
            "PATCH",
            "/apis/batch/v1/namespaces/ns/jobs/j/status?fieldManager=gryvia-jobs",
            "application/merge-patch+json",
        ),
        ("DELETE", "/api/v1/namespaces/ns/pods/p", "application/json"),
        (
            "GET",
            "/api/v1/namespaces/ns/pods/p/log?container=main&sinceTime=2026-01-01T00:00:00Z&tailLines=0&timestamps=true",
            None,
        ),
    ]
    applied = json.loads(server.requests[3][3])
    assert (applied["apiVersion"], applied["kind"]) == ("batch/v1", "Job")
    assert json.loads(server.requests[5][3]) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Foreground",
        "preconditions": {"uid": "u1"},
    }
    assert server.requests[0][2]["User-Agent"] == "gryvia-test"


FIELD = "spec.containers: Required value"


@pytest.mark.parametrize(
    ("code", "body", "error", "says"),
    [
        (400, status(400, "BadRequest", "strict decoding"), Terminal, "strict decoding"),
        (400, status(400, "BadRequest", 'container "c" in pod "p" is waiting to start: X'), Transient, "waiting"),
        (400, status(400, "BadRequest", 'previous terminated container "c" in pod "p" not found'), Gone, "previous"),
        (401, status(401, "Unauthorized", "Unauthorized"), Transient, "Unauthorized"),
        (403, status(403, "Forbidden", "cannot get pods"), Terminal, "cannot get pods"),
        (
            403,
            status(403, "Forbidden", 'pods "p" is forbidden: not yet ready to handle request'),
            Transient,
            "not yet ready",
        ),
        (404, status(404, "NotFound", 'pods "p" not found'), Gone, "not found"),
        (404, b"404 page not found\n", Transient, "page not found"),
        (404, b"<html>nginx</html>", Transient, "nginx"),
        (405, status(405, "MethodNotAllowed"), Terminal, "MethodNotAllowed"),
        (408, status(408, "Timeout"), Transient, "Timeout"),
        (409, status(409, "Conflict", "the object has been modified"), Conflict, "modified"),
        (409, status(409, "AlreadyExists", "exists"), Conflict, "exists"),
        (410, status(410, "Expired", "old"), Gone, "old"),
        (413, status(413, "RequestEntityTooLarge", "too large"), Terminal, "too large"),
        (422, status(422, "Invalid", FIELD), Terminal, FIELD),
        (429, status(429, "TooManyRequests", "slow"), Transient, "slow"),
        (500, status(500, "InternalError", "boom"), Transient, "boom"),
        (502, b"<html>Bad Gateway</html>", Transient, "Bad Gateway"),
        (503, b"", Transient, "empty body"),
        (200, b"<html>login</html>", Transient, "not JSON"),
        (200, b'{"half":', Transient, "not JSON"),
        (200, b"[]", Transient, "not a JSON object"),
        (302, b"", Transient, "302"),
    ],
)
async def test_what_an_answer_means(code, body, error, says, server, kube):
    server.answer(code, body)
    with pytest.raises(error, match=says) as caught:
        await kube.get(PODS, "ns", "p")
    assert "pods ns/p" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (status(403, "Forbidden", "no"), "Forbidden"),
        (status(403, "Forbidden", "x", causes=[{"reason": "NamespaceTerminating"}]), "NamespaceTerminating"),
        (status(403, "Forbidden", 'pods "p" is forbidden: exceeded quota: q'), "ExceededQuota"),
        (status(422, "Invalid", "x"), "Invalid"),
    ],
)
async def test_the_reason_tells_terminal_errors_apart(body, reason, server, kube):
    server.answer(body["code"], body)
    with pytest.raises(Terminal) as caught:
        await kube.create(PODS, POD)
    assert caught.value.reason == reason


async def test_retry_after_is_handed_on(server, kube):
    server.answer(429, status(429, "TooManyRequests"), Retry_After="7")
    with pytest.raises(Transient) as caught:
        await kube.get(PODS, "ns", "p")
    assert caught.value.retry_after == 7
    server.answer(500, status(500, "ServerTimeout", retryAfterSeconds=3))
    with pytest.raises(Transient) as caught:
        await kube.get(PODS, "ns", "p")
    assert caught.value.retry_after == 3


async def test_a_list_is_every_page_and_its_items_know_what_they_are(server, kube):
    async def pages(request: web.Request) -> web.StreamResponse:
        at = int(request.query.get("continue", 0))
        meta = {"resourceVersion": "9", "continue": str(at + 1) if at < 2 else ""}
        return web.json_response({"kind": "PodList", "metadata": meta, "items": [{"metadata": {"name": f"p{at}"}}]})

    server.handler = pages
    items = await kube.list(PODS, "ns", labels="a=b,c in (d, e)", fields="metadata.name=x")
    assert [item["metadata"]["name"] for item in items] == ["p0", "p1", "p2"]
    assert {(item["apiVersion"], item["kind"]) for item in items} == {("v1", "Pod")}
    assert "resourceVersion" not in server.requests[0][1]


async def test_a_list_that_expires_half_way_is_begun_anew(server, kube):
    async def pages(request: web.Request) -> web.StreamResponse:
        if len(server.requests) == 2:
            return web.json_response(status(410, "Expired", "old"), status=410)
        meta = {"resourceVersion": "9", "continue": "" if "continue" in request.query else "x"}
        return web.json_response({"kind": "PodList", "metadata": meta, "items": [{"metadata": {"name": "p"}}]})

    server.handler = pages
    assert len(await kube.list(PODS)) == 2
    server.answer(410, status(410, "Expired", "old"))
    with pytest.raises(Transient, match="three times"):
        await kube.list(PODS)


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "PodList", "items": [], "metadata": {}},
        {"kind": "PodList", "items": {}, "metadata": {"resourceVersion": "1"}},
        {"kind": "Status", "metadata": {"resourceVersion": "1"}},
        {"kind": "JobList", "items": [], "metadata": {"resourceVersion": "1"}},
    ],
)
async def test_what_is_no_list_is_no_empty_list(body, server, kube):
    server.answer(200, body)
    with pytest.raises(Transient, match="no PodList"):
        await kube.list(PODS)


async def test_a_type_that_is_not_served_is_gone(server, kube):
    server.answer(404, b"404 page not found\n")
    with pytest.raises(Gone, match="does not serve"):
        await kube.list(PODS)


async def drop_once(server: Server) -> None:
    """The first request's connection is dropped without an answer."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if len(server.requests) == 1 and request.transport is not None:
            request.transport.abort()
        return web.json_response({"metadata": {"name": "p"}})

    server.handler = handler


async def test_a_dropped_connection_is_made_good_when_repeating_is_safe(server, kube):
    await drop_once(server)
    await kube.apply(JOBS, {"metadata": {"namespace": "ns", "name": "j"}}, manager="m")
    assert len(server.requests) == 2


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_a_dropped_connection_of_a_write_that_must_not_be_repeated_is_transient(verb, server, kube):
    await drop_once(server)
    calls = {
        "create": lambda: kube.create(PODS, POD),
        "patch": lambda: kube.patch(PODS, "ns", "p", {}),
    }
    with pytest.raises(Transient):
        await calls[verb]()
    assert len(server.requests) == 1


async def test_a_server_that_never_answers_is_transient_in_time(server):
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    server.handler = never
    transport = Transport(Access(server.url, Fixed()), user_agent="t", clock=SystemClock())
    with pytest.raises(Transient, match="no answer in time"):
        await transport.call(Request("get", PODS, "GET", "/", "x", timeout=0.1))
    await transport.close()


async def test_nobody_listening_is_transient(unused_port):
    async with connected(f"http://127.0.0.1:{unused_port}") as kube:
        with pytest.raises(Transient):
            await kube.get(PODS, "ns", "p")
        with pytest.raises(Transient):
            await anext(kube.watch(PODS, 1))


@pytest.fixture
async def unused_port() -> int:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = int(listener.sockets[0].getsockname()[1])
    listener.close()
    await listener.wait_closed()
    return port


async def test_a_rotated_token_is_read_again_after_a_refusal(server, tmp_path):
    file = tmp_path / "token"
    file.write_text("old\n")

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] == "Bearer new":
            return web.json_response({"metadata": {}})
        file.write_text("new\n")
        return web.json_response(status(401, "Unauthorized", "Unauthorized"), status=401)

    server.handler = handler
    async with connected(server.url, TokenFile(file, SystemClock())) as kube:
        await kube.get(PODS, "ns", "p")
        await kube.get(PODS, "ns", "p")
    assert [headers["Authorization"] for _, _, headers, _ in server.requests] == [
        "Bearer old",
        "Bearer new",
        "Bearer new",
    ]


async def test_requests_are_observed(server):
    seen: list[tuple[str, str, int]] = []
    server.answer(404, status(404, "NotFound", "x"))

    def observe(verb: str, plural: str, code: int, seconds: float) -> None:
        assert seconds >= 0
        seen.append((verb, plural, code))

    async with connected(server.url, observe=observe) as kube:
        with pytest.raises(Gone):
            await kube.get(LEASES, "ns", "l")
        with pytest.raises(Gone):
            await anext(kube.watch(PODS, 1))
    assert seen == [("get", "leases", 404), ("watch", "pods", 404)]


def streams(data: bytes, then: str = "close") -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(data)
        if then == "reset" and request.transport is not None:
            request.transport.abort()
        if then == "hang":
            await asyncio.Event().wait()
        return response

    return handler


async def lines_of(kube: Kube, **options: float) -> tuple[list[bytes], GryviaError | None]:
    lines: list[bytes] = []
    try:
        async for some in kube.watch(PODS, 1, **options):  # type: ignore[arg-type]  # idle only
            lines += some
    except GryviaError as error:
        return lines, error
    return lines, None


async def test_a_watch_yields_complete_lines_whatever_the_cut(server, kube):
    data = b'{"a":1}\n{"b":2}\n\n{"c":3}\n'
    for cut in range(len(data) + 1):
        server.handler = streams(data[:cut])
        lines, error = await lines_of(kube)
        assert error is None
        assert lines == [line for line in data[:cut].split(b"\n")[:-1] if line]


async def test_a_watch_that_breaks_says_so_after_the_complete_lines(server, kube):
    server.handler = streams(b'{"a":1}\n{"b"', then="reset")
    lines, error = await lines_of(kube)
    assert isinstance(error, Transient)
    assert lines in ([b'{"a":1}'], [])


async def test_a_watch_gone_silent_is_noticed(server, kube):
    server.handler = streams(b'{"a":1}\n', then="hang")
    lines, error = await lines_of(kube, idle=0.1)
    assert lines == [b'{"a":1}']
    assert isinstance(error, Transient)


async def test_a_watch_takes_long_lines(server, kube):
    long = b'{"a":"' + b"x" * (6 * 2**20) + b'"}'
    server.handler = streams(long + b"\n")
    assert await lines_of(kube) == ([long], None)


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (410, status(410, "Expired", "too old"), Expired),
        (502, b"<html>", Transient),
        (200, b"<html>", Transient),
        (403, status(403, "Forbidden", "no"), Terminal),
        (404, b"404 page not found", Gone),
    ],
)
async def test_the_head_of_a_watch_is_judged_before_any_line(code, body, error, server, kube):
    server.answer(code, body)
    lines, raised = await lines_of(kube)
    assert lines == []
    assert isinstance(raised, error)


async def test_many_watches_leave_the_calls_their_connections(server, kube):
    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            return await streams(b"{}\n", then="hang")(request)
        return web.json_response({"metadata": {}})

    server.handler = handler
    watches = [kube.watch(PODS, 1) for _ in range(100)]
    for watch in watches:
        await anext(watch)
    async with asyncio.timeout(5):
        await kube.get(PODS, "ns", "p")
    for watch in watches:
        await watch.aclose()
