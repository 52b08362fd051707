"""An API server that only serves bytes: lists and watches of the types the bridge reads, made before, so that what is measured is the
bridge. The GryviaAIJobs are as a real API server sends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from gryvia_bridge.watched import WATCHED
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.objects import Json

LISTS = {
    one.plural: "PartialObjectMetadataList" if one.metadata_only else f"{one.resource.kind}List" for one in WATCHED
}


def job(number: int, version: int) -> Json:
    """As a real API server sends one: about 1.5 kB, and as much again of managedFields."""
    name = f"job-{number:05}"
    owned: Json = {f"f:field{i}": {f"f:part{j}": {} for j in range(6)} for i in range(12)}
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"6f1c{number:04x}-8b1d-4c53-9c1e-{number:012x}",
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"team": "vision", "gryvia.io/job": name},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 400},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": owned}],
        },
        "spec": {
            "type": "training",
            "image": "registry.example.com/vision/train:2026.1",
            "command": ["python", "-m", "train"],
            "args": ["--epochs", "90", "--data", "/data/imagenet"],
            "gpus": 4,
            "env": [{"name": f"SETTING_{i}", "value": f"value-{i}-{number}"} for i in range(10)],
        },
        "status": {
            "phase": "Running",
            "message": "3 of 4 workers are ready",
            "observedGeneration": 1,
            "version": version,
        },
    }


class ByteServer:
    """Answers every LIST and WATCH of the bridge; what is put into `watch` goes out in the watch of the jobs."""

    def __init__(self, count: int) -> None:
        self.items = [orjson.dumps(job(number, number + 1)) for number in range(count)]
        self.version = count
        self.watch: asyncio.Queue[bytes] = asyncio.Queue()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        """The URL."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        plural = request.path.rpartition("/")[2]
        if plural == "kube-system":
            return web.json_response({"metadata": {"name": plural, "uid": "cluster"}})
        if "watch" in request.query:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(request)
            while plural == AI_JOB.plural:
                await response.write(await self.watch.get())
            await asyncio.Event().wait()
            return response
        start = int(request.query.get("continue", 0))
        items = self.items if plural == AI_JOB.plural else []
        end = start + int(request.query["limit"])
        meta = {"resourceVersion": str(self.version), "continue": str(end) if end < len(items) else ""}
        head = orjson.dumps({"kind": LISTS[plural], "metadata": meta})[:-1]
        return web.Response(
            body=head + b',"items":[' + b",".join(items[start:end]) + b"]}", content_type="application/json"
        )

    def change(self, number: int) -> bytes:
        self.version += 1
        self.items[number] = orjson.dumps(job(number, self.version))
        return b'{"type":"MODIFIED","object":' + self.items[number] + b"}\n"
