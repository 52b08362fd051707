"""`gryvia logs`: what a job's pods write, of one replica, to the end when asked.

Following is one stream a container run: each byte is sent once, however long the job. When the stream breaks, the log is read from
its beginning and what was printed is skipped, so no line is lost or printed twice. A retry is a new pod, a restart a new run
in the same pod; both are followed in their turn, and standard error says so.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from typing import Annotated

import typer

from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, verb
from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.children import child_name
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.kube.resources import GROUP, PODS

POLL_SECONDS = 0.5
INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
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
    reader = _Reader(kube, namespace)
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


@dataclass(slots=True)
class _Reader:
    """`done` are the runs of containers read to their end, `printed` the bytes of each that are on the screen."""

    kube: Kube
    namespace: str
    done: set[tuple[str, int]] = field(default_factory=set)
    printed: dict[tuple[str, int], int] = field(default_factory=dict)

    async def read(self, pod: Json) -> None:
        """The newest run of the pod to its end, unless that has been read."""
        run = (metadata(pod)["uid"], _restarts(pod))
        if run in self.done or not _started(pod):
            return
        name = metadata(pod)["name"]
        if self.done and run not in self.printed:
            again = f", run {run[1] + 1}" if run[1] else ""
            print(f"gryvia: the job goes on in pod {name}{again}", file=sys.stderr)
        skip = self.printed.setdefault(run, 0)
        try:
            async for chunk in self.kube.follow_logs(self.namespace, name):
                _write(chunk[skip:])
                self.printed[run] += max(0, len(chunk) - skip)
                skip = max(0, skip - len(chunk))
        except (Transient, Gone):
            # Not started yet, broken off, or gone already: the next look, or the end of the job, says more.
            return
        self.done.add(run)


async def _pods(kube: Kube, namespace: str, job: str, replica: int) -> list[Json]:
    """Of this index, oldest first."""
    pods = await kube.list(PODS, namespace, labels=f"{GROUP}/job={child_name(job)}")
    mine = [pod for pod in pods if _index(pod) == replica]
    return sorted(mine, key=lambda pod: (metadata(pod)["creationTimestamp"], int(metadata(pod)["resourceVersion"])))


async def _phase(kube: Kube, namespace: str, job: str) -> str:
    try:
        obj = await kube.get(AI_JOB.resource, namespace, job)
    except Gone as error:
        raise Terminal(f"job {job} not found in namespace {namespace}", reason="NotFound") from error
    return str((obj.get("status") or {}).get("phase") or "")


def _no_pod(job: str, replica: int, phase: str) -> Terminal:
    return Terminal(f"job {job} has no pod with index {replica} (phase {phase or 'Pending'})", reason="NoPod")


def _index(pod: Json) -> int:
    labels = labels_of(pod)
    return next((int(labels[name]) for name in INDEX_LABELS if name in labels), 0)


def _container(pod: Json) -> Json:
    statuses: list[Json] = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return statuses[0]


def _restarts(pod: Json) -> int:
    return int(_container(pod).get("restartCount") or 0)


def _started(pod: Json) -> bool:
    state = _container(pod).get("state") or {}
    return "running" in state or "terminated" in state


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
