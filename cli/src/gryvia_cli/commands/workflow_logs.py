"""`gryvia workflows logs`: what the pods of a run's steps write, each line with its step in front.

    train           a job or a script       train[2]         an item of withItems
    train/1         another worker of a distributed job

Without -f the newest attempt of each step, in the order of the spec; with it every pod that runs until the run has ended, as
they write, whole lines only.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Annotated

import typer

from gryvia_cli.commands.workflow_asking import WorkflowName
from gryvia_cli.editing import read
from gryvia_cli.pipeline import StepView
from gryvia_cli.pod_logs import PodLogs, index_of
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, verb
from gryvia_cli.workflow_runs import with_run
from gryvia_cli.workflow_text import has_ended, phase_of, steps_of
from gryvia_cli.workflow_watch import POLL_SECONDS
from gryvia_common.errors import Gone, Terminal, Transient
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import child_name
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import GROUP, PODS

WITH_PODS = ("job", "script")


@verb(CLUSTER, NAMESPACE)
async def logs(
    session: Session,
    name: WorkflowName,
    step: Annotated[str | None, typer.Argument(help="Name of a step; all if none.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    run: Annotated[int | None, typer.Option("--run", min=0, help="An earlier run.")] = None,
) -> int:
    """Print the logs of a run's steps, the step's name in front of each line."""
    if follow and run is not None:
        raise Terminal("--follow is for the current run; leave out --run", reason="Usage")
    async with session.kube() as kube:
        obj = await with_run(kube, session.place, name, run)
        _check(obj, step)
        if follow:
            await _follow(kube, session.place, name, step)
        elif not [None async for _ in _printed(kube, session.place, obj, step)]:
            what = f"step {step} of workflow {name}" if step else f"workflow {name}"
            raise Terminal(f"{what} ({phase_of(obj)}) has no pod that has written anything", reason="NoLog")
    return 0


class Lines:
    """Bytes in, whole lines out, with a name in front."""

    def __init__(self, title: str) -> None:
        self._title = title.encode()
        self._rest = b""

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            sys.stdout.buffer.write(self._title + b" | " + line + b"\n")
        sys.stdout.buffer.flush()

    def end(self) -> None:
        """The last line may lack its end."""
        if self._rest:
            self.write(b"\n")


async def _printed(kube: Kube, namespace: str, obj: Json, step: str | None) -> AsyncIterator[None]:
    """An item for each pod whose log was printed."""
    for title, pod in await _pods(kube, namespace, obj, step):
        try:
            text = await kube.logs(namespace, metadata(pod)["name"])
        except (Transient, Gone):
            # It has not started, or is gone with its log.
            continue
        lines = Lines(title)
        lines.write(text)
        lines.end()
        yield


async def _follow(kube: Kube, namespace: str, name: str, step: str | None) -> None:
    """A reader a pod. The end of the run is seen before the pods are looked at for the last time."""
    reading: dict[str, asyncio.Task[None]] = {}
    async with asyncio.TaskGroup() as group:
        ended = False
        while not ended:
            obj = await read(kube, WORKFLOW, namespace, name)
            ended = has_ended(obj)
            for title, pod in await _pods(kube, namespace, obj, step):
                uid = metadata(pod)["uid"]
                if uid not in reading:
                    reading[uid] = group.create_task(_read(kube, namespace, title, pod))
            if not ended:
                await asyncio.sleep(POLL_SECONDS)


async def _read(kube: Kube, namespace: str, title: str, pod: Json) -> None:
    """Until the pod has ended, or is gone."""
    lines = Lines(title)
    reader = PodLogs(kube, namespace, lines.write)
    while True:
        await reader.read(pod)
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            break
        await asyncio.sleep(POLL_SECONDS)
        try:
            pod = await kube.get(PODS, namespace, metadata(pod)["name"])
        except Gone:
            break
    lines.end()


def _check(obj: Json, step: str | None) -> None:
    if step is None:
        return
    name, steps = metadata(obj)["name"], {one.name: one for one in steps_of(obj)}
    if step not in steps:
        raise Terminal(f"workflow {name} has no step {step}; its steps: {', '.join(steps)}", reason="NotFound")
    if steps[step].type not in WITH_PODS:
        raise Terminal(f"step {step} of workflow {name} is a {steps[step].type} step and has no pod", reason="NoLog")


async def _pods(kube: Kube, namespace: str, obj: Json, step: str | None) -> list[tuple[str, Json]]:
    """The pods of the newest attempts, each with what stands before its lines."""
    found: list[tuple[str, Json]] = []
    for one in steps_of(obj):
        if one.type in WITH_PODS and step in (None, one.name):
            for title, child in _children(one):
                found += [(_title(title, pod), pod) for pod in await _of_child(kube, namespace, one.type, child)]
    return found


def _children(step: StepView) -> list[tuple[str, str]]:
    items = step.state.get("items")
    if items:
        return [(f"{step.name}[{item['index']}]", item["jobName"]) for item in items if item.get("jobName")]
    child = step.state.get("jobName")
    return [(step.name, child)] if child else []


async def _of_child(kube: Kube, namespace: str, type: str, child: str) -> list[Json]:
    """The pod of a script; of a job the newest one of each worker."""
    if type == "script":
        try:
            return [await kube.get(PODS, namespace, child)]
        except Gone:
            return []
    pods = await kube.list(PODS, namespace, labels=f"{GROUP}/job={child_name(child)}")
    newest = {index_of(pod): pod for pod in sorted(pods, key=lambda pod: int(metadata(pod)["resourceVersion"]))}
    return [newest[index] for index in sorted(newest)]


def _title(title: str, pod: Json) -> str:
    return f"{title}/{index_of(pod)}" if index_of(pod) else title
