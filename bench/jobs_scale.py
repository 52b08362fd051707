"""Many GryviaAIJobs at once: what they cost until each has its children and its status, on devcluster and on a real API server
(where `make kube-tools` has built one).

Bridge, jobs service and NATS are processes of their own, as in a cluster. One creator makes all objects at once with 16 connections;
the clock runs from the answer to its last create until every object has a phase, which is written after its children.

jobs-settled: seconds for that. jobs-cpu: milliseconds of bridge, service and NATS an object. jobs-writes: the service's own writes an
object. jobs-against-bare: the time from the first create to the end, over that of a bare aiohttp writer which sends the same requests
(create the object, its Service and its Job, patch its status) to the same API server in the same run, with the same watch open.
Beside it stand the CPU seconds of everybody in both runs: when they are more than the cores have in 1.3 times the bare writer's
time, no amount of waiting less can hold it.

    python -m bench.jobs_scale [objects ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Set
from functools import partial
from pathlib import Path

from bench.clusters import Cluster, on_each
from bench.programs import cpu_seconds
from bench.results import Line, line, run_measure
from bench.services import services
from bench.workload import bare_writer, create_jobs, names_of, watching
from gryvia_cli.platform.crds import connected
from gryvia_common.clock import SystemClock
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.resources import JOBS

NAMES = ("jobs-settled", "jobs-cpu", "jobs-writes", "jobs-against-bare")
COUNTS = (1000, 10_000)
CPU_GOAL, WRITES_GOAL, RATIO_GOAL = 5.0, 3.0, 1.3


def seconds_goal(objects: int) -> float:
    """6 s for 1,000, 75 s for 10,000."""
    return 6.0 if objects <= 1000 else objects * 0.0075


async def measure(objects: int, cluster: Cluster, folder: Path) -> list[Line]:
    names = [f"job-{number:05}" for number in range(objects)]
    async with connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()) as kube:
        async with services(cluster, kube, folder) as ours, watching(kube, "Pending") as seen:
            before, server, writes = ours.cpu(), _server(cluster), await ours.written("jobs")
            creator = time.process_time()
            first = time.perf_counter()
            await create_jobs(kube, names)
            last = time.perf_counter()
            end = await seen.all(names)
            spent = {name: after - before[name] for name, after in ours.cpu().items()}
            server, creator = _server(cluster) - server, time.process_time() - creator
            writes = await ours.written("jobs") - writes
            assert set(names) <= await names_of(kube, JOBS)
        # The services are gone: the bare writer has the server for itself.
        async with watching(kube, "Pending") as seen:
            names = [f"bare-{number:05}" for number in range(objects)]
            bare_server, writer, began = _server(cluster), time.process_time(), time.perf_counter()
            await bare_writer(kube, names)
            bare = await seen.all(names) - began
            bare_server, writer = _server(cluster) - bare_server, time.process_time() - writer
    where = {"objects": objects, "cluster": cluster.name}
    each = {name: _milliseconds(seconds, objects) for name, seconds in spent.items()}
    servers = {"ours": _milliseconds(server, objects), "bare": _milliseconds(bare_server, objects)}
    compared: dict[str, object] = {
        "seconds": {"ours": round(end - first, 2), "bare": round(bare, 2)},
        "cpu": {"ours": round(sum(spent.values()), 2), "api_server": round(server, 2), "creator": round(creator, 2)},
        "bare_cpu": {"api_server": round(bare_server, 2), "writer": round(writer, 2)},
    }
    return [
        line(NAMES[0], end - last, "s after the last create", seconds_goal(objects), where),
        line(
            NAMES[1],
            sum(each.values()),
            "ms of our CPU an object",
            CPU_GOAL,
            {**where, "of": each, "api_server": servers},
        ),
        line(NAMES[2], writes / objects, "writes an object", WRITES_GOAL, where),
        line(NAMES[3], (end - first) / bare, "times a bare writer", RATIO_GOAL, {**where, **compared}),
    ]


def _server(cluster: Cluster) -> float:
    return sum(map(cpu_seconds, cluster.server_pids))


def _milliseconds(seconds: float, objects: int) -> float:
    return round(seconds * 1000 / objects, 2)


def run(wanted: Set[str] = frozenset(NAMES), counts: Iterable[int] = COUNTS) -> Iterable[Line]:
    for objects in counts:
        yield from on_each(partial(measure, objects))


if __name__ == "__main__":
    run_measure(run(counts=[int(text) for text in sys.argv[1:]] or COUNTS))
