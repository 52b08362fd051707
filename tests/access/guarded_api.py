"""A door before an API server that lets each service do what `deploy/rbac` grants it and nothing else, and keeps count.

The rules are judged here as RBAC judges them (devcluster has no RBAC), on the requests as a server sees them: from method and path,
not from what the client thinks it asks. On a real cluster nothing is judged here: the service's own token goes on, and what the
server forbids is noted.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

RBAC = Path(__file__).parents[2] / "deploy" / "rbac"
NAMESPACE = "gryvia"
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Request(NamedTuple):
    """What RBAC looks at. `resource` includes the subresource: `pods/log`."""

    service: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str


class Grant(NamedTuple):
    """One verb on one resource. `namespace` "" is everywhere, `name` "" any."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def covers(self, request: Request) -> bool:
        return (
            (self.verb, self.group, self.resource) == (request.verb, request.group, request.resource)
            and self.namespace in ("", request.namespace)
            and self.name in ("", request.name)
        )


def grants(service: str) -> frozenset[Grant]:
    """Every single thing that the generated roles allow. Only roles that are bound to the service's account count."""
    documents = [d for d in yaml.safe_load_all((RBAC / f"{service}.yaml").read_text()) if d["kind"] != "ServiceAccount"]
    bound = {
        (d["roleRef"]["kind"], d["roleRef"]["name"], d["metadata"].get("namespace", ""))
        for d in documents
        if d["kind"].endswith("Binding")
        and d["subjects"] == [{"kind": "ServiceAccount", "name": f"gryvia-{service}", "namespace": NAMESPACE}]
    }

    def found() -> Iterator[Grant]:
        for role in documents:
            namespace = role["metadata"].get("namespace", "")
            if (role["kind"], role["metadata"]["name"], namespace) in bound:
                for rule in role["rules"]:
                    for group in rule["apiGroups"]:
                        for resource in rule["resources"]:
                            for verb in rule["verbs"]:
                                for name in rule.get("resourceNames", [""]):
                                    yield Grant(verb, group, resource, namespace, name)

    return frozenset(found())


def read_request(service: str, method: str, path: str, query: Mapping[str, str]) -> Request:
    """As the API server takes a URL apart (its RequestInfo)."""
    steps = path.strip("/").split("/")
    group, rest = ("", steps[2:]) if steps[0] == "api" else (steps[1], steps[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    resource = "/".join([rest[0], *rest[2:]])
    if method == "GET":
        verb = "get" if name else "watch" if query.get("watch") in ("1", "true") else "list"
    else:
        verb = _VERBS[method] if name or method == "POST" else "deletecollection"
    return Request(service, verb, group, resource, namespace, name)


class GuardedApi:
    """`tokens`: what each service shows the server behind. `judge` False: the server judges. `before` is awaited before a
    request goes on."""

    def __init__(
        self, upstream: str, tokens: Mapping[str, str], *, judge: bool, tls: ssl.SSLContext | None = None
    ) -> None:
        self.seen: set[Request] = set()
        self.refused: list[Request] = []
        self.before: Callable[[Request], Awaitable[None]] | None = None
        self._upstream = upstream
        self._tokens = tokens
        self._tls = tls
        self._granted = {service: grants(service) for service in tokens} if judge else None
        self._url = ""

    def used(self, service: str) -> frozenset[Grant]:
        """The grants that some request needed."""
        seen = [request for request in self.seen if request.service == service]
        return frozenset(grant for grant in grants(service) if any(grant.covers(request) for request in seen))

    def kubeconfig(self, folder: Path, service: str) -> Path:
        path = folder / f"kubeconfig-{service}"
        config = {
            "current-context": "x",
            "clusters": [{"name": "x", "cluster": {"server": f"{self._url}/as/{service}"}}],
            "users": [{"name": "x", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        }
        path.write_text(json.dumps(config))
        return path

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None), read_bufsize=2**20
        ) as session:

            async def handle(request: web.BaseRequest) -> web.StreamResponse:
                return await self._pass_on(session, request)

            runner = web.ServerRunner(
                web.Server(handle, handler_cancellation=True, access_log=None), shutdown_timeout=0.2
            )
            await runner.setup()
            try:
                site = web.TCPSite(runner, "127.0.0.1", 0)
                await site.start()
                self._url = "http://127.0.0.1:{1}".format(*runner.addresses[0])
                yield
            finally:
                await runner.cleanup()

    async def _pass_on(self, session: aiohttp.ClientSession, request: web.BaseRequest) -> web.StreamResponse:
        _, _, service, path = request.raw_path.split("/", 3)
        asked = read_request(service, request.method, path.partition("?")[0], request.query)
        self.seen.add(asked)
        if self._granted is not None and not any(grant.covers(asked) for grant in self._granted[service]):
            self.refused.append(asked)
            return web.json_response(_forbidden(asked), status=403)
        if self.before is not None:
            await self.before(asked)
        headers = {k: v for k, v in request.headers.items() if k in ("Accept", "Content-Type", "User-Agent")}
        headers["Authorization"] = f"Bearer {self._tokens[service]}"
        url = URL(f"{self._upstream}/{path}", encoded=True)
        body = await request.read()
        async with session.request(
            request.method, url, headers=headers, data=body or None, ssl=self._tls if self._tls else True
        ) as answer:
            if answer.status == 403:
                self.refused.append(asked)
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            try:
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            except (ConnectionError, aiohttp.ClientError):
                return response
            await response.write_eof()
            return response


def _forbidden(asked: Request) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Forbidden",
        "code": 403,
        "message": f"{asked.service} may not {asked.verb} {asked.resource} {asked.namespace}/{asked.name}",
    }


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 30.0) -> None:
    """Look again and again; the bound is for a hang."""
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)
