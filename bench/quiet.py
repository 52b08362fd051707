"""What is asked of the API server while nothing changes: nothing but leases and watches, and nothing is written.

Ended jobs, jobs that run for ever, suspended ones and a study whose trials run, brought there by the cluster's controllers and a
simulated node; then every request of bridge, jobs and tuner service is counted where it arrives: in the audit log of a real API
server, on the wire before devcluster. (Ten minutes without a write in virtual time end each run of tests/simulation.)

quiet-writes: what was written, leases apart. quiet-requests: everything besides leases, watches and the logs of pods that run.
quiet-log-reads: those, a minute and running pod: a tenth of the pod's age apart, once a minute from its tenth minute on.
quiet-cpu: the three services and NATS, in per cent of one core.

    python -m bench.quiet [seconds]
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Set
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from tools.realcluster.http import Http
from tools.realcluster.node import Fate, SimulatedNode

from bench.clusters import Cluster, on_each
from bench.results import Line, line, run_measure
from bench.services import services
from bench.wire import Wire
from bench.workload import NAMESPACE, create_jobs, in_parallel, job, watching
from gryvia_cli.platform.crds import connected
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.client import Kube
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json, metadata

NAMES = ("quiet-writes", "quiet-requests", "quiet-log-reads", "quiet-cpu")
SECONDS = 60.0
SETTLE = 5.0
ENDED, RUNNING, SUSPENDED, TRIALS = 40, 20, 20, 2
"""How many jobs of each sort, and how many trials of the study run at once."""

Asked = Callable[[], Counter[str]]
"""The requests so far, each as its verb and its path without query."""
_WATCH = re.compile(r"[?&]watch=(1|true)")


def fate(pod: Json, attempt: int) -> Fate:
    return Fate(run=0.2 if metadata(pod)["name"].startswith("ended") else None)


def study() -> Json:
    return {
        "apiVersion": AUTO_TUNER.resource.api_version,
        "kind": AUTO_TUNER.name,
        "metadata": {"name": "study", "namespace": NAMESPACE},
        "spec": {
            "searchAlgorithm": "random",
            "objective": {"metricName": "score", "direction": "maximize"},
            "maxTrials": 20,
            "parallelism": TRIALS,
            "parameterSpace": [{"name": "x", "type": "float", "min": 0, "max": 1}],
            "jobTemplate": job("")["spec"],
        },
    }


async def measure(seconds: float, cluster: Cluster, folder: Path) -> list[Line]:
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()))
        asked, watched = await stack.enter_async_context(accounted(cluster))
        api = await stack.enter_async_context(Http(cluster.url, cluster.token, cluster.ca))
        await stack.enter_async_context(SimulatedNode(api, fate, tls=cluster.tls))
        ours = await stack.enter_async_context(services(watched, kube, folder, ("bridge", "jobs", "tuner")))
        await bring(kube)
        await settle(asked)
        before, spent, began = asked(), sum(ours.cpu().values()), time.monotonic()
        await asyncio.sleep(seconds)
        passed = time.monotonic() - began
        spent = sum(ours.cpu().values()) - spent
        found = asked() - before
    others = {what: count for what, count in found.items() if sort(what) not in ("lease", "watch", "log")}
    writes = {what: count for what, count in others.items() if sort(what) == "write"}
    logs = sum(count for what, count in found.items() if sort(what) == "log")
    minutely = logs * 60 / passed / (RUNNING + TRIALS)
    where = {"seconds": round(passed), "cluster": cluster.name}
    allowed = dict(Counter(sort(what) for what in found.elements()))
    return [
        line(NAMES[0], sum(writes.values()), "writes", 0, {**where, "which": writes}),
        line(NAMES[1], sum(others.values()), "requests", 0, {**where, "which": others, "all": allowed}),
        line(NAMES[2], minutely, "reads a minute and running pod", None, where),
        line(NAMES[3], spent / passed * 100, "% of a core", None, where),
    ]


@asynccontextmanager
async def accounted(cluster: Cluster) -> AsyncIterator[tuple[Asked, Cluster]]:
    """What the services have asked so far, and the cluster as they have to be shown it for that."""
    if audit := cluster.audit:

        def from_audit() -> Counter[str]:
            return Counter(
                f"{event['verb']} {event['requestURI'].partition('?')[0]}"
                for event in audit()
                if event.get("userAgent", "").startswith("gryvia-")
                and not event["userAgent"].startswith("gryvia-cli")
                and event["stage"] == ("ResponseStarted" if event["verb"] == "watch" else "ResponseComplete")
            )

        yield from_audit, cluster
        return
    async with Wire.before(cluster.url, cluster.kubeconfig) as (wire, through):

        def from_wire() -> Counter[str]:
            found: Counter[str] = Counter()
            for (method, path), count in wire.requests.items():
                verb = "watch" if _WATCH.search(path) else method.lower()
                found[f"{verb} {path.partition('?')[0].removeprefix(f'/token/{cluster.token}')}"] += count
            return found

        yield from_wire, replace(cluster, kubeconfig=through)


async def bring(kube: Kube) -> None:
    """Everything to where it stays."""
    ended, running = _names("ended", ENDED), _names("running", RUNNING)
    suspended = [job(name) for name in _names("suspended", SUSPENDED)]
    for one in suspended:
        one["spec"]["suspend"] = True
    async with (
        watching(kube, "Succeeded") as over,
        watching(kube, "Running") as run,
        watching(kube, "Pending") as held,
    ):
        await kube.create(AUTO_TUNER.resource, study())
        await create_jobs(kube, [*ended, *running])
        await in_parallel(partial(kube.create, AI_JOB.resource, one) for one in suspended)
        await over.all(ended)
        await run.all(running)
        await held.all(metadata(one)["name"] for one in suspended)


async def settle(asked: Asked) -> None:
    """Until nobody has asked for anything that counts for SETTLE seconds; who never stops is measured as it is."""

    def counted() -> int:
        return sum(count for what, count in asked().items() if sort(what) in ("read", "write"))

    before, since = counted(), time.monotonic()
    began = since
    while time.monotonic() - since < SETTLE and time.monotonic() - began < SECONDS:
        await asyncio.sleep(0.5)
        if (now := counted()) != before:
            before, since = now, time.monotonic()


def sort(what: str) -> str:
    verb, _, path = what.partition(" ")
    if "/leases" in path:
        return "lease"
    if verb == "watch":
        return "watch"
    if path.endswith("/log"):
        return "log"
    return "read" if verb in ("get", "list") else "write"


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}-{number:02}" for number in range(count)]


def run(wanted: Set[str] = frozenset(NAMES), seconds: float = SECONDS) -> Iterable[Line]:
    yield from on_each(partial(measure, seconds), controllers=True)


if __name__ == "__main__":
    run_measure(run(seconds=float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
