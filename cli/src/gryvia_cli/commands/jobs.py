"""Jobs: submit, validate, status, cancel, delete. A job is a GryviaAIJob, and only that kind is submitted here."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from gryvia_cli.commands.logs import follow_logs
from gryvia_cli.manifests import read_manifests
from gryvia_cli.options import ContextOption, FileOption, NamespaceOption, Output, OutputOption, YesOption
from gryvia_cli.output import age, console, print_table, print_value
from gryvia_cli.session import Session, run
from gryvia_common.errors import Conflict, Gone, Terminal
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.catalogue import BY_NAME
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.runtime.parsing import describe

ENDED = frozenset({"Succeeded", "Failed", "Rejected", "Cancelled"})
POLL_SECONDS = 0.5

JobNames = Annotated[list[str], typer.Argument(help="Names of jobs.")]


def submit(
    context: typer.Context,
    file: FileOption,
    namespace: NamespaceOption = "default",
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit code 1 unless it succeeds.")] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Follow the logs (and wait for the end).")] = False,
    kube_context: ContextOption = None,
) -> None:
    """Create the GryviaAIJobs of a manifest."""
    session: Session = context.obj

    async def work() -> int:
        jobs = _jobs(read_manifests(file), namespace, str(file))
        async with session.kube(kube_context) as kube:
            for job in jobs:
                name = metadata(job)["name"]
                try:
                    await kube.create(AI_JOB.resource, job, manager="gryvia-cli")
                except Conflict as error:
                    raise Terminal(
                        f"a job {name} exists already in namespace {metadata(job)['namespace']}; "
                        f"delete it (`gryvia delete job {name}`) or choose another name",
                        reason="AlreadyExists",
                    ) from error
                print(f"job {name} created")
            if not (wait or logs):
                return 0
            good = True
            for job in jobs:
                good &= await _until_ended(kube, metadata(job)["namespace"], metadata(job)["name"], logs)
            return 0 if good else 1

    run(work)


def validate(context: typer.Context, file: FileOption) -> None:
    """Check the manifests of a file against the kinds, without a cluster."""

    async def work() -> int:
        wrong = 0
        for manifest in read_manifests(file):
            title = f"{manifest['kind']} {metadata(manifest)['name']}"
            kind = BY_NAME.get(manifest["kind"])
            if kind is None:
                print(f"{title}: not a kind of Gryvia, not checked")
                continue
            try:
                kind.spec.model_validate(manifest.get("spec") or {})
            except ValidationError as error:
                wrong += 1
                print(f"{title}: {describe(error, 'spec')}")
            else:
                print(f"{title}: valid")
        return 1 if wrong else 0

    run(work)


def status(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the job.")],
    namespace: NamespaceOption = "default",
    output: OutputOption = Output.TABLE,
    kube_context: ContextOption = None,
) -> None:
    """How a job is doing: phase, reason, progress, metrics."""
    session: Session = context.obj

    async def work() -> int:
        async with session.kube(kube_context) as kube:
            job = await _get(kube, namespace, name)
        state: dict[str, Any] = job.get("status") or {}
        if output != Output.TABLE:
            print_value(state, output)
            return 0
        print_table(console(color=session.color), ("FIELD", "VALUE"), _facts(job, state))
        return 0

    run(work)


def cancel(
    context: typer.Context,
    names: JobNames,
    namespace: NamespaceOption = "default",
    yes: YesOption = False,
    kube_context: ContextOption = None,
) -> None:
    """Cancel jobs: their pods are stopped, the objects stay. A job that has ended is left as it is."""
    session: Session = context.obj

    async def work() -> int:
        if not yes:
            typer.confirm(f"Cancel {', '.join(names)}?", abort=True)
        async with session.kube(kube_context) as kube:
            for name in names:
                print(await _cancel(kube, namespace, name))
        return 0

    run(work)


def delete(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="job")],
    names: Annotated[list[str], typer.Argument(help="Names.")],
    namespace: NamespaceOption = "default",
    yes: YesOption = False,
    kube_context: ContextOption = None,
) -> None:
    """Delete objects and all that belongs to them."""
    from gryvia_cli.names import kind_of

    session: Session = context.obj

    async def work() -> int:
        found = kind_of(kind)
        if not yes:
            typer.confirm(f"Delete {found.name} {', '.join(names)}?", abort=True)
        async with session.kube(kube_context) as kube:
            for name in names:
                try:
                    await kube.delete(found.resource, namespace if found.namespaced else "", name)
                except Gone as error:
                    raise Terminal(f"{found.name} {name} not found", reason="NotFound") from error
                print(f"{kind} {name} deleted")
        return 0

    run(work)


def _jobs(manifests: list[Json], namespace: str, file: str) -> list[Json]:
    others = sorted({manifest["kind"] for manifest in manifests if manifest["kind"] != AI_JOB.name})
    if others:
        raise Terminal(
            f"{file} holds {', '.join(others)}; submit takes {AI_JOB.name} only, use `kubectl apply -f {file}`",
            reason="Usage",
        )
    for manifest in manifests:
        metadata(manifest).setdefault("namespace", namespace)
    return manifests


async def _get(kube: Kube, namespace: str, name: str) -> Json:
    try:
        return await kube.get(AI_JOB.resource, namespace, name)
    except Gone as error:
        raise Terminal(f"job {name} not found in namespace {namespace}", reason="NotFound") from error


async def _cancel(kube: Kube, namespace: str, name: str) -> str:
    """The phase is patched on the version that was read: a job that ends meanwhile has ended, not been cancelled."""
    while True:
        job = await _get(kube, namespace, name)
        phase = (job.get("status") or {}).get("phase")
        if phase in ENDED:
            return f"job {name} has ended already ({phase})"
        body = {
            "metadata": {"resourceVersion": metadata(job)["resourceVersion"]},
            "status": {"phase": "Cancelled", "message": "cancelled from the command line"},
        }
        try:
            await kube.patch(AI_JOB.resource, namespace, name, body, subresource="status", manager="gryvia-cli")
        except Conflict:
            continue
        return f"job {name} cancelled"


async def _until_ended(kube: Kube, namespace: str, name: str, logs: bool) -> bool:
    """Whether it succeeded; says each phase once."""
    if logs:
        await follow_logs(kube, namespace, name, follow=True, replica=0)
    said = ""
    while True:
        state = (await _get(kube, namespace, name)).get("status") or {}
        phase = state.get("phase") or "Pending"
        if (phase != said and not logs) or phase in ENDED:
            message = f": {state['message']}" if state.get("message") else ""
            print(f"job {name}: {phase}{message}")
        said = phase
        if phase in ENDED:
            return bool(phase == "Succeeded")
        await asyncio.sleep(POLL_SECONDS)


def _facts(job: Json, state: dict[str, Any]) -> list[tuple[str, str]]:
    now = datetime.now(UTC)
    facts = [("name", metadata(job)["name"]), ("phase", state.get("phase") or "Pending")]
    facts += [("message", state["message"])] if state.get("message") else []
    for key, title in (("startTime", "started"), ("completionTime", "ended")):
        if state.get(key):
            facts.append((title, f"{state[key]} ({age(state[key], now)} ago)"))
    for key in ("replicasReady", "retries", "gpusAllocated"):
        if state.get(key):
            facts.append((key, str(state[key])))
    metrics = (state.get("metrics") or {}).get("values") or {}
    facts += [(f"metric {name}", f"{value:g}") for name, value in sorted(metrics.items())]
    for condition in state.get("conditions") or []:
        facts.append(
            (condition["type"], f"{condition['status']} {condition['reason']} {condition.get('message', '')}".strip())
        )
    return facts
