"""Many GryviaAIJobs to their end: created at once, run by the cluster's own Job controller and a simulated node, all Succeeded.

On a real API server the controllers are kube-controller-manager's, on devcluster its own. A pod runs for a second and writes
nothing; its log is asked for, as of every job that ends. Most of the time is the cluster's: it makes, binds and ends a pod a job.

jobs-ended: seconds from the last create to the last job being Succeeded. jobs-ended-cpu: milliseconds of bridge, service and NATS a
job. jobs-ended-writes: the service's own writes a job, of its children, its status and its events.

    python -m bench.jobs_to_end [objects ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Set
from functools import partial
from pathlib import Path

from tools.realcluster.http import Http
from tools.realcluster.node import Fate, SimulatedNode

from bench.clusters import Cluster, on_each
from bench.results import Line, line, run_measure
from bench.services import READS, services
from bench.workload import create_jobs, watching
from gryvia_cli.platform.crds import connected
from gryvia_common.clock import SystemClock
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.objects import Json

NAMES = ("jobs-ended", "jobs-ended-cpu", "jobs-ended-writes")
COUNTS = (1000,)
RUNS = 1.0


def fate(pod: Json, attempt: int) -> Fate:
    return Fate(run=RUNS)


async def measure(objects: int, cluster: Cluster, folder: Path) -> list[Line]:
    names = [f"job-{number:05}" for number in range(objects)]
    async with (
        connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()) as kube,
        Http(cluster.url, cluster.token, cluster.ca) as api,
        SimulatedNode(api, fate, tls=cluster.tls),
        services(cluster, kube, folder) as ours,
        watching(kube, "Succeeded", "Failed") as seen,
    ):
        before, writes = ours.cpu(), await ours.requests("jobs")
        await create_jobs(kube, names)
        last = time.perf_counter()
        end = await seen.all(names)
        spent = {name: after - before[name] for name, after in ours.cpu().items()}
        asked = {
            f"{verb} {plural}": round((count - writes.get((verb, plural), 0.0)) / objects, 2)
            for (verb, plural), count in (await ours.requests("jobs")).items()
        }
        failed = {name for name in names if seen.jobs[name] != "Succeeded"}
        assert not failed, f"{len(failed)} jobs failed: {min(failed)}"
    where = {"objects": objects, "cluster": cluster.name}
    each = {name: round(seconds * 1000 / objects, 2) for name, seconds in spent.items()}
    written = sum(count for what, count in asked.items() if what.split()[0] not in READS and "leases" not in what)
    return [
        line(NAMES[0], end - last, "s after the last create", None, where),
        line(NAMES[1], sum(each.values()), "ms of our CPU a job", None, {**where, "of": each}),
        line(NAMES[2], written, "writes a job", None, {**where, "requests": {k: v for k, v in asked.items() if v}}),
    ]


def run(wanted: Set[str] = frozenset(NAMES), counts: Iterable[int] = COUNTS) -> Iterable[Line]:
    for objects in counts:
        yield from on_each(partial(measure, objects), controllers=True)


if __name__ == "__main__":
    run_measure(run(counts=[int(text) for text in sys.argv[1:]] or COUNTS))
