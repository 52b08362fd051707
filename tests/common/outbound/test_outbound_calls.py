"""The guarded client against real servers on loopback addresses, which an exception opens one by one."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from gryvia_common.errors import GryviaError, Terminal, Transient
from gryvia_common.outbound.allowed import Allowed
from gryvia_common.outbound.client import BLOCKED, Answer, Call, Limits, Outbound

QUICK = Limits(seconds=5.0, body=1000)
OPEN = Outbound(Allowed.parse(["127.0.0.1", "hooks.test", "other.test"]))


class Names(AbstractResolver):
    """Answers by turns: `names[name]` is a list of answers, the last for ever."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = {name.replace("_", "."): answers for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise OSError(socket.EAI_NONAME, "unknown")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=one,
                port=port,
                family=socket.AF_INET6 if ":" in one else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for one in found
        ]

    async def close(self) -> None:
        return None


class Site:
    """A server whose answers the test writes; `seen` are the requests that arrived, `where` the address each came to."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.where: list[str] = []
        self.handlers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {}
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.bodies.append(await request.read())
        assert request.transport is not None
        self.where.append(request.transport.get_extra_info("sockname")[0])
        handler = self.handlers.get(request.path)
        if handler is not None:
            return await handler(request)
        return web.Response(text=f"{request.method} {request.path}", headers={"Set-Cookie": "session=1"})

    def redirect(self, path: str, to: str, status: int = 302) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(status=status, headers={"Location": to})

        self.handlers[path] = answer

    def url(self, path: str = "/", host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[Site]]]:
    runners: list[web.AppRunner] = []

    async def start(host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> Site:
        site = Site()
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", site.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        site.port = runner.addresses[0][1]
        return site

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def site(serve: Callable[..., Awaitable[Site]]) -> Site:
    return await serve()


async def refused(outbound: Outbound, url: str, limits: Limits = QUICK) -> Terminal:
    with pytest.raises(Terminal) as found:
        await outbound.send(Call(url), limits)
    assert found.value.reason == BLOCKED
    return found.value


async def test_a_call_arrives_as_it_was_meant(site: Site) -> None:
    answer = await OPEN.send(Call(site.url("/hook?a=1"), "PUT", {"X-Team": "ml"}, b"{}"), QUICK)
    assert (answer.status, answer.body, answer.cut, answer.origin) == (200, b"PUT /hook", False, site.url(""))
    (request,) = site.seen
    assert (request.headers["X-Team"], request.headers["User-Agent"], request.query["a"]) == ("ml", "gryvia", "1")
    assert site.bodies == [b"{}"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1.", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0",
     "[::]", "１２７.0.0.1", "[64:ff9b::7f00:1]"],
)  # fmt: skip
async def test_without_an_exception_nothing_reaches_a_server_on_this_machine(site: Site, host: str) -> None:
    await refused(Outbound(Allowed()), site.url(host=host))
    assert site.seen == []


@pytest.mark.parametrize(
    "place", ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.64.0.1", "10.0.0.1"]
)
async def test_metadata_and_networks_of_the_cluster_are_never_tried(place: str) -> None:
    error = await refused(OPEN, f"http://{place}/latest/meta-data/iam/")
    assert "may not be called" in str(error)


async def test_a_name_with_one_bad_address_among_good_ones_is_refused(site: Site) -> None:
    names = Names(mixed_test=[["8.8.8.8", "127.0.0.1"]])
    error = await refused(Outbound(Allowed(), resolver=names), site.url(host="mixed.test"))
    assert str(error) == f"http://mixed.test:{site.port} may not be called: its address is loopback"
    assert site.seen == []


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_judged(
    serve: Callable[..., Awaitable[Site]],
) -> None:
    """Rebinding: the second answer would lead to a place that is not allowed."""
    good = await serve("127.0.0.2")
    await serve("127.0.0.1", good.port)
    names = Names(rebind_test=[["127.0.0.2"], ["127.0.0.1"]])
    outbound = Outbound(Allowed.parse(["127.0.0.2"]), resolver=names)
    assert (await outbound.send(Call(good.url(host="rebind.test")), QUICK)).status == 200
    assert good.where == ["127.0.0.2"]
    assert names.asked == ["rebind.test"]
    assert good.seen[0].headers["Host"] == f"rebind.test:{good.port}"
    await refused(outbound, good.url(host="rebind.test"))


async def test_a_redirect_is_judged_like_a_call_of_its_own(site: Site) -> None:
    for number, to in enumerate(
        (
            "http://169.254.169.254/",
            "http://[::ffff:10.0.0.1]/",
            "http://2852039166/",
            "//10.0.0.1/",
            "file:///etc/passwd",
        )
    ):
        site.redirect(f"/r{number}", to)
        await refused(OPEN, site.url(f"/r{number}"))
    names = Names(hooks_test=[["127.0.0.1"]], inner_test=[["127.0.0.1"]])
    site.redirect("/named", site.url("/x", host="inner.test"))
    await refused(Outbound(Allowed.parse(["hooks.test"]), resolver=names), site.url("/named", host="hooks.test"))


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [(301, "POST", "GET", b""), (302, "POST", "GET", b""), (303, "PUT", "GET", b""),
     (307, "POST", "POST", b"x"), (308, "PUT", "PUT", b"x"), (302, "PUT", "PUT", b"x")],
)  # fmt: skip
async def test_what_a_redirect_does_to_the_method(site: Site, status: int, method: str, then: str, body: bytes) -> None:
    site.redirect("/from", "/to", status)
    answer = await OPEN.send(Call(site.url("/from"), method, {"Content-Type": "text/plain"}, b"x"), QUICK)
    assert answer.body == f"{then} /to".encode()
    assert site.bodies[-1] == body


async def test_five_redirects_are_followed_and_not_six(site: Site) -> None:
    for number in range(6):
        site.redirect(f"/{number}", f"/{number + 1}")
    assert (await OPEN.send(Call(site.url("/1")), QUICK)).body == b"GET /6"
    with pytest.raises(Terminal, match="more than 5 redirects"):
        await OPEN.send(Call(site.url("/0")), QUICK)


async def test_another_origin_gets_no_headers_that_may_be_secrets(site: Site) -> None:
    names = Names(hooks_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    outbound = Outbound(Allowed.parse(["hooks.test", "other.test"]), resolver=names)
    site.redirect("/away", site.url("/there", host="other.test"), 307)
    site.redirect("/here", "/there", 307)
    secrets = {"Authorization": "Bearer s", "Cookie": "a=s", "X-Api-Key": "s", "Private-Token": "s"}
    call = Call(
        site.url("/away", host="hooks.test"),
        "POST",
        {**secrets, "Idempotency-Key": "k", "Content-Type": "text/plain"},
        b"x",
    )
    await outbound.send(call, QUICK)
    first, second = site.seen
    assert all(name in first.headers for name in secrets)
    assert not any(name in second.headers for name in secrets)
    assert (second.headers["Idempotency-Key"], second.headers["Content-Type"]) == ("k", "text/plain")
    await outbound.send(Call(site.url("/here", host="hooks.test"), "POST", secrets), QUICK)
    assert all(name in site.seen[-1].headers for name in secrets)


async def test_cookies_of_an_answer_are_not_kept(site: Site) -> None:
    site.redirect("/r", "/x")
    await OPEN.send(Call(site.url("/")), QUICK)
    await OPEN.send(Call(site.url("/r")), QUICK)
    assert not any("Cookie" in request.headers for request in site.seen)


async def test_proxies_of_the_environment_are_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert (await OPEN.send(Call(site.url("/")), QUICK)).status == 200


async def test_a_body_that_does_not_end_is_read_to_the_bound(site: Site) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    site.handlers["/"] = endless
    answer = await OPEN.send(Call(site.url("/")), QUICK)
    assert (answer.body, answer.cut) == (b"x" * 1000, True)


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", gzip.compress(bytes(5_000_000))), ("deflate", zlib.compress(bytes(5_000_000))),
     ("deflate", zlib.compress(bytes(5_000_000))[2:-4]), ("", bytes(50_000))],
)  # fmt: skip
async def test_the_bound_holds_after_decompression(site: Site, encoding: str, packed: bytes) -> None:
    async def bomb(request: web.Request) -> web.StreamResponse:
        return web.Response(body=packed, headers={"Content-Encoding": encoding} if encoding else {})

    site.handlers["/"] = bomb
    answer = await OPEN.send(Call(site.url("/")), QUICK)
    assert (answer.body, answer.cut) == (bytes(1000), True)


async def test_a_small_compressed_body_is_whole_and_a_broken_one_is_cut(site: Site) -> None:
    bodies = {
        "/whole": (gzip.compress(b"hello"), "gzip"),
        "/broken": (b"\x1f\x8bnonsense", "gzip"),
        "/exact": (b"y" * 1000, "identity"),
    }

    async def answer(request: web.Request) -> web.StreamResponse:
        body, encoding = bodies[request.path]
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    site.handlers = dict.fromkeys(bodies, answer)
    found = {path: await OPEN.send(Call(site.url(path)), QUICK) for path in bodies}
    assert (found["/whole"].body, found["/whole"].cut) == (b"hello", False)
    assert (found["/broken"].body, found["/broken"].cut) == (b"", True)
    assert (len(found["/exact"].body), found["/exact"].cut) == (1000, False)


@pytest.mark.parametrize("part", ["head", "body", "redirect"])
async def test_the_time_is_for_everything_together(site: Site, part: str) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if part == "body":
            await response.prepare(request)
            await response.write(b"a")
        if part == "redirect":
            await asyncio.sleep(0.15)
            return web.Response(status=302, headers={"Location": "/"})
        await asyncio.sleep(30)
        return response

    site.handlers["/"] = slow
    with pytest.raises(Transient) as late:
        await OPEN.send(Call(site.url("/?token=secret")), Limits(seconds=0.4, body=100))
    assert str(late.value) == f"http://127.0.0.1:{site.port} did not answer within 0.4 s"


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: bytes) -> None:
    await reader.read(1000)
    writer.write(text)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"", "closed the connection without an answer"), (b"SSH-2.0-OpenSSH_9\r\n", "not HTTP"),
     (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", "broke off")],
)  # fmt: skip
async def test_a_server_that_does_not_speak_http_is_no_crash(text: bytes, words: str) -> None:
    server = await asyncio.start_server(lambda reader, writer: answered(reader, writer, text), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Transient) as error:
            await OPEN.send(Call(f"http://127.0.0.1:{port}/secret"), QUICK)
    assert words in str(error.value)
    assert "secret" not in str(error.value)


async def test_a_name_that_is_none_and_a_port_where_nobody_listens_are_said_without_addresses(site: Site) -> None:
    outbound = Outbound(Allowed.parse(["hooks.test"]), resolver=Names(hooks_test=[["127.0.0.1"]]))
    with pytest.raises(Transient, match=r"http://gone.test: the name cannot be resolved"):
        await outbound.send(Call("http://gone.test/"), QUICK)
    with pytest.raises(Transient) as error:
        await outbound.send(Call("http://hooks.test:1/"), QUICK)
    assert str(error.value) == "http://hooks.test:1: Connection refused"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, found = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            "/CN=hooks.test",
        ]
        + ["-addext", "subjectAltName=DNS:hooks.test", "-days", "2", "-keyout", str(key), "-out", str(found)],
        check=True,
        capture_output=True,
    )
    return found, key


async def test_tls_is_for_the_name_and_never_left_by_a_redirect(
    serve: Callable[..., Awaitable[Site]], certificate: tuple[Path, Path]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    asked: list[str | None] = []
    context.sni_callback = lambda connection, name, given: asked.append(name)
    secure, plain = await serve(tls=context), await serve()
    secure.redirect("/down", plain.url("/", host="hooks.test"))
    names = Names(hooks_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
    outbound = Outbound(
        Allowed.parse(["hooks.test", "other.test"]),
        resolver=names,
        tls=ssl.create_default_context(cafile=str(certificate[0])),
    )
    assert (await outbound.send(Call(secure.url("/", "hooks.test", "https")), QUICK)).status == 200
    assert asked == ["hooks.test"]
    error = await refused(outbound, secure.url("/down", "hooks.test", "https"))
    assert "from https to http" in str(error)
    assert plain.seen == []
    with pytest.raises(Terminal, match="TLS failed"):
        await outbound.send(Call(secure.url("/", "other.test", "https")), QUICK)
    with pytest.raises(Terminal, match="TLS failed"):
        await Outbound(Allowed.parse(["hooks.test"]), resolver=names).send(
            Call(secure.url("/", "hooks.test", "https")), QUICK
        )


async def test_a_status_that_is_wanted_is_kept_though_it_is_a_redirect(site: Site) -> None:
    site.redirect("/r", "http://169.254.169.254/")
    answer: Answer = await OPEN.send(Call(site.url("/r"), keep=frozenset({302})), QUICK)
    assert answer.status == 302


async def test_a_header_that_cannot_be_sent_is_refused_before_anything_is_sent(site: Site) -> None:
    for headers in ({"Host": "a"}, {"X": "a\r\nY: b"}, {"Transfer-Encoding": "chunked"}):
        with pytest.raises(GryviaError):
            await OPEN.send(Call(site.url("/"), headers=headers), QUICK)
    assert site.seen == []
