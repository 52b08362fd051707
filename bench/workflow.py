"""Workflows: what a step costs, how many runs a minute one replica carries, and how large the object of a large one gets.

Bridge, workflow service and NATS are processes of their own; steps of type job are played by this program instead of the jobs service.

workflow-light-step: milliseconds of the service's CPU a light step, in one workflow of 99 in a row: register, registry, webhook (to a
server on this machine), 33 times; `wall` is the time from one to the next, with the requests to the API server and the call in it.
workflow-runs: three-step runs a minute, all created at once, each such a triple; with the CPU of every process, the API server's and
this one's too. workflow-writes: the service's own writes a step, of light steps and of scripts in pods that a simulated node runs.
workflow-object: bytes of a workflow with 100 steps that each reported 32 outputs of 4 kB.

    python -m bench.workflow [runs]
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable, Set
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import orjson
from aiohttp import web
from tools.realcluster.http import Http
from tools.realcluster.node import Fate, SimulatedNode

from bench.clusters import Cluster, on_each
from bench.programs import cpu_seconds
from bench.results import Line, line, run_measure
from bench.services import Services, services
from bench.workload import NAMESPACE, Seen, in_parallel, watching
from gryvia_cli.platform.crds import connected
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, Resource

NAMES = ("workflow-light-step", "workflow-runs", "workflow-writes", "workflow-object")
RUNS, SCRIPT_RUNS, TRIPLES = 1000, 60, 33
STEP_GOAL, RUNS_GOAL, WRITES_GOAL, OBJECT_GOAL = 20.0, 2100.0, 3.0, 200_000.0
WIDE, OUTPUTS, LONG = 100, 32, 4000
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


def workflow(name: str, steps: list[Json]) -> Json:
    return {
        "apiVersion": WORKFLOW.resource.api_version,
        "kind": WORKFLOW.name,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"steps": steps},
    }


def triple(number: int, url: str, after: str = "") -> list[Json]:
    """A model is registered, gets metadata, and somebody is told."""
    entry = {"modelName": "m", "version": str(number), "artifacts": {"s3Path": "s3://models/m"}}
    first: Json = {"name": f"register-{number}", "register": entry}
    if after:
        first["dependsOn"] = [after]
    change = {
        "entry": f"{{{{steps.register-{number}.outputs.name}}}}",
        "action": "updateMetadata",
        "metadata": {"f1": "0.9"},
    }
    return [
        first,
        {"name": f"note-{number}", "dependsOn": [f"register-{number}"], "registry": change},
        {"name": f"tell-{number}", "dependsOn": [f"note-{number}"], "webhook": {"url": url, "body": "{}"}},
    ]


def scripts() -> list[Json]:
    script = {"image": "python:3.11-slim", "command": ["python", "-c", "pass"]}
    names = ("one", "two", "three")
    return [
        {"name": name, "script": script, **({"dependsOn": [names[index - 1]]} if index else {})}
        for index, name in enumerate(names)
    ]


async def light(runs: int, url: str, kube: Kube, ours: Services, cluster: Cluster) -> list[Line]:
    chain: list[Json] = []
    for number in range(TRIPLES):
        chain += triple(number, url, chain[-1]["name"] if chain else "")
    async with watching(kube, "Succeeded", "Failed", resource=WORKFLOW.resource) as seen:
        first, engine = time.perf_counter(), ours.cpu()["workflow"]
        await kube.create(WORKFLOW.resource, workflow("chain", chain))
        wall = (await seen.all(["chain"]) - first) * 1000 / len(chain)
        engine = (ours.cpu()["workflow"] - engine) * 1000 / len(chain)
        names = [f"run-{number:05}" for number in range(runs)]
        before, writes = _cpu(ours, cluster), await ours.requests("workflow")
        first = time.perf_counter()
        await in_parallel(partial(kube.create, WORKFLOW.resource, workflow(name, triple(0, url))) for name in names)
        took = await seen.all(names) - first
        _succeeded(seen)
    steps = 3 * runs
    cpu = {name: round((after - before[name]) * 1000 / steps, 2) for name, after in _cpu(ours, cluster).items()}
    asked = await _asked(ours, writes, steps)
    where = {"cluster": cluster.name}
    return [
        line(
            NAMES[0],
            engine,
            "ms of CPU a light step",
            STEP_GOAL,
            {**where, "steps": len(chain), "wall": round(wall, 1)},
        ),
        line(
            NAMES[1],
            runs * 60 / took,
            "three-step runs a minute",
            RUNS_GOAL,
            {**where, "runs": runs, "cpu_ms_a_step": cpu},
            digits=0,
            least=True,
        ),
        line(
            NAMES[2], _written(asked), "writes a step", WRITES_GOAL, {**where, "of": "light steps", "requests": asked}
        ),
    ]


async def in_pods(kube: Kube, ours: Services, cluster: Cluster) -> list[Line]:
    names = [f"pods-{number:03}" for number in range(SCRIPT_RUNS)]
    async with (
        Http(cluster.url, cluster.token, cluster.ca) as api,
        SimulatedNode(api, lambda pod, attempt: Fate(run=0.5)),
        watching(kube, "Succeeded", "Failed", resource=WORKFLOW.resource) as seen,
    ):
        # No controller of the cluster runs here that would make it, and a real API server admits no pod without it.
        await kube.apply(SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": NAMESPACE}}, manager="bench")
        before = await ours.requests("workflow")
        await in_parallel(partial(kube.create, WORKFLOW.resource, workflow(name, scripts())) for name in names)
        await seen.all(names)
        _succeeded(seen)
        asked = await _asked(ours, before, 3 * len(names))
    return [
        line(
            NAMES[2],
            _written(asked),
            "writes a step",
            WRITES_GOAL,
            {"cluster": cluster.name, "of": "scripts in pods", "requests": asked},
        )
    ]


async def wide(kube: Kube, cluster: Cluster) -> list[Line]:
    """The largest that the object of a wide workflow gets, and that no output is lost."""
    job = {"type": "training", "gpus": 0, "image": "python:3.11-slim"}
    steps: list[Json] = [{"name": f"s{number:03}", "jobTemplate": job} for number in range(WIDE)]
    async with watching(kube, "Succeeded", "Failed", resource=WORKFLOW.resource) as seen, asyncio.TaskGroup() as group:
        played = group.create_task(play_jobs(kube, WIDE))
        await kube.create(WORKFLOW.resource, workflow("wide", steps))
        await seen.all(["wide"])
        await played
    found = await kube.get(WORKFLOW.resource, NAMESPACE, "wide")
    assert found["status"]["phase"] == "Succeeded"
    kept = [one for one in await kube.list(CONFIG_MAPS, NAMESPACE) if metadata(one)["name"].startswith("wide-")]
    outputs = sum(len(value) for one in kept for value in one["data"].values())
    assert outputs == WIDE * OUTPUTS * LONG, f"{outputs} bytes of outputs are kept"
    size = len(orjson.dumps({**found, "metadata": {**metadata(found), "managedFields": None}}))
    detail = {"cluster": cluster.name, "outputs_bytes": outputs, "config_maps": len(kept)}
    return [line(NAMES[3], size, "bytes, without managedFields", OBJECT_GOAL, detail, digits=0)]


async def play_jobs(kube: Kube, count: int) -> None:
    """What the jobs service would write, for jobs that end at once and have reported all they may."""
    annotations = {f"gryvia.io/output-k{number:02}": "x" * LONG for number in range(OUTPUTS)}
    ended: set[str] = set()
    while len(ended) < count:
        jobs = [one for one in await kube.list(AI_JOB.resource, NAMESPACE) if metadata(one)["name"] not in ended]
        for job in jobs:
            name = metadata(job)["name"]
            await kube.patch(AI_JOB.resource, NAMESPACE, name, {"metadata": {"annotations": annotations}})
            status = {"status": {"phase": "Succeeded", "completionTime": "2026-01-01T00:00:00Z"}}
            await kube.patch(AI_JOB.resource, NAMESPACE, name, status, subresource="status")
            ended.add(name)
        await asyncio.sleep(0.05)


@asynccontextmanager
async def hook() -> AsyncIterator[str]:
    """The URL of a server that answers every call."""

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def _succeeded(seen: Seen) -> None:
    failed = [name for name, phase in seen.jobs.items() if phase != "Succeeded"]
    assert not failed, f"{len(failed)} workflows failed, {min(failed)} among them"


def _cpu(ours: Services, cluster: Cluster) -> dict[str, float]:
    """Seconds of each process so far, this one included: it creates, watches and answers the calls."""
    server = sum(map(cpu_seconds, cluster.server_pids))
    return {**ours.cpu(), "api_server": server, "bench": time.process_time()}


async def _asked(ours: Services, before: dict[tuple[str, str], float], steps: int) -> dict[str, float]:
    """The service's requests a step, by verb and type, leases apart."""
    return {
        f"{verb} {plural}": share
        for (verb, plural), count in (await ours.requests("workflow")).items()
        if plural != "leases" and (share := round((count - before.get((verb, plural), 0.0)) / steps, 3))
    }


def _written(asked: dict[str, float]) -> float:
    return sum(count for what, count in asked.items() if what.split()[0] not in ("get", "list", "watch", "ping"))


async def measure(runs: int, wanted: Set[str], cluster: Cluster, folder: Path) -> list[Line]:
    environment = {"GRYVIA_WORKFLOW_ALLOW_WEBHOOKS": "true", "GRYVIA_WORKFLOW_WEBHOOK_ALLOWED": "127.0.0.1"}
    lines: list[Line] = []
    async with (
        connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()) as kube,
        hook() as url,
        services(cluster, kube, folder, ("bridge", "workflow"), environment) as ours,
    ):
        async with watching(kube, "Succeeded", "Failed", resource=WORKFLOW.resource) as seen:
            await kube.create(WORKFLOW.resource, workflow("probe", triple(0, url)))
            await seen.all(["probe"])
        if wanted & set(NAMES[:3]):
            lines += await light(runs, url, kube, ours, cluster)
        if NAMES[2] in wanted:
            lines += await in_pods(kube, ours, cluster)
        if NAMES[3] in wanted:
            lines += await wide(kube, cluster)
    return lines


def run(wanted: Set[str] = frozenset(NAMES), runs: int = RUNS) -> Iterable[Line]:
    yield from on_each(partial(measure, runs, wanted))


if __name__ == "__main__":
    run_measure(run(runs=int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
