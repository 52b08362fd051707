"""`gryvia logs`: what a job's pods write, of one replica, to the end when asked.

The API server is read again where the last read ended, by time and without the lines already shown: a connection that drops costs
nothing and no line is printed twice.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from gryvia_cli.options import ContextOption, NamespaceOption
from gryvia_cli.session import Session, run
from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, labels_of, metadata
from gryvia_common.kube.resources import GROUP, PODS

POLL_SECONDS = 0.5
INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
ENDED = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})


def logs(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="Name of the job.")],
    namespace: NamespaceOption = "default",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
    replica: Annotated[int, typer.Option("--replica", min=0, help="Which worker of a distributed job.")] = 0,
    kube_context: ContextOption = None,
) -> None:
    """Print the logs of a job."""
    session: Session = context.obj

    async def work() -> int:
        async with session.kube(kube_context) as kube:
            await follow_logs(kube, namespace, job, follow=follow, replica=replica)
        return 0

    run(work)


async def follow_logs(kube: Kube, namespace: str, job: str, *, follow: bool, replica: int) -> None:
    """To standard output. Terminal when there is no such job or it has no pod with this index."""
    shown: dict[str, int] = {}
    while True:
        phase = await _phase(kube, namespace, job)
        pods = await kube.list(PODS, namespace, labels=f"{GROUP}/job={job}")
        mine = sorted(
            (pod for pod in pods if _index(pod) == replica), key=lambda pod: metadata(pod)["creationTimestamp"]
        )
        for pod in mine[-1:]:
            await _print_new(kube, namespace, metadata(pod)["name"], shown)
        ended = phase in ENDED
        if not follow or ended:
            if not mine and not shown:
                raise Terminal(
                    f"job {job} has no pod with index {replica} (phase {phase or 'Pending'})", reason="NoPod"
                )
            return
        await asyncio.sleep(POLL_SECONDS)


async def _print_new(kube: Kube, namespace: str, pod: str, shown: dict[str, int]) -> None:
    """Whole lines beyond those shown of this pod."""
    try:
        text = await kube.logs(namespace, pod)
    except (Transient, Gone, Terminal):
        # Not started yet, or gone already: the next look, or the end of the job, says more.
        return
    fresh = text[shown.get(pod, 0) :]
    sys.stdout.write(fresh.decode(errors="replace"))
    sys.stdout.flush()
    shown[pod] = len(text)


async def _phase(kube: Kube, namespace: str, job: str) -> str:
    try:
        obj = await kube.get(AI_JOB.resource, namespace, job)
    except Gone as error:
        raise Terminal(f"job {job} not found in namespace {namespace}", reason="NotFound") from error
    return str((obj.get("status") or {}).get("phase") or "")


def _index(pod: Json) -> int:
    labels = labels_of(pod)
    return next((int(labels[name]) for name in INDEX_LABELS if name in labels), 0)
