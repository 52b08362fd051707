"""`gryvia logs`: what a job's pods write, of one replica, to the end when asked.

A retry is a new pod, a restart a new run in the same pod; both are followed in their turn, and standard error says so.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from gryvia_cli.pod_logs import PodLogs, index_of
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, verb
from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.children import child_name
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import GROUP, PODS

POLL_SECONDS = 0.5
ENDED = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})


@verb(CLUSTER, NAMESPACE)
async def logs(
    session: Session,
    job: Annotated[str, typer.Argument(help="Name of the job.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    replica: Annotated[int, typer.Option("--replica", min=0, help="Which worker of a distributed job.")] = 0,
) -> int:
    """Print the logs of a job."""
    async with session.kube() as kube:
        if follow:
            await follow_logs(kube, session.place, job, replica=replica)
        else:
            await print_logs(kube, session.place, job, replica=replica)
    return 0


async def print_logs(kube: Kube, namespace: str, job: str, *, replica: int) -> None:
    """What the newest pod has written. Terminal when there is no such job or pod."""
    phase = await _phase(kube, namespace, job)
    pods = await _pods(kube, namespace, job, replica)
    if not pods:
        raise _no_pod(job, replica, phase)
    try:
        _write(await kube.logs(namespace, metadata(pods[-1])["name"]))
    except Transient as error:
        raise Terminal(f"job {job} has written nothing yet: {error}", reason="NoLog") from error


async def follow_logs(kube: Kube, namespace: str, job: str, *, replica: int, may_lack_pod: bool = False) -> None:
    """To standard output until the job has ended. Terminal when there is no such job, or (unless `may_lack_pod`) it ended
    without such a pod."""
    reader = PodLogs(kube, namespace, _write, _goes_on)
    phase = await _phase(kube, namespace, job)
    # What ran before the newest pod is history.
    skipped = {metadata(pod)["uid"] for pod in (await _pods(kube, namespace, job, replica))[:-1]}
    seen = False
    while True:
        phase = await _phase(kube, namespace, job)
        for pod in await _pods(kube, namespace, job, replica):
            if metadata(pod)["uid"] not in skipped:
                await reader.read(pod)
                seen = True
        if phase in ENDED:
            if not (seen or may_lack_pod):
                raise _no_pod(job, replica, phase)
            return
        await asyncio.sleep(POLL_SECONDS)


async def _pods(kube: Kube, namespace: str, job: str, replica: int) -> list[Json]:
    """Of this index, oldest first."""
    pods = await kube.list(PODS, namespace, labels=f"{GROUP}/job={child_name(job)}")
    mine = [pod for pod in pods if index_of(pod) == replica]
    return sorted(mine, key=lambda pod: (metadata(pod)["creationTimestamp"], int(metadata(pod)["resourceVersion"])))


async def _phase(kube: Kube, namespace: str, job: str) -> str:
    try:
        obj = await kube.get(AI_JOB.resource, namespace, job)
    except Gone as error:
        raise Terminal(f"job {job} not found in namespace {namespace}", reason="NotFound") from error
    return str((obj.get("status") or {}).get("phase") or "")


def _no_pod(job: str, replica: int, phase: str) -> Terminal:
    return Terminal(f"job {job} has no pod with index {replica} (phase {phase or 'Pending'})", reason="NoPod")


def _goes_on(pod: str, run: int) -> None:
    print(f"gryvia: the job goes on in pod {pod}" + (f", run {run + 1}" if run else ""), file=sys.stderr)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
