"""Jobs: submit, validate, cancel, delete. A job is a GryviaAIJob, and only that kind is submitted here."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Annotated

import typer

from gryvia_cli.commands.logs import ENDED, follow_logs
from gryvia_cli.manifests import read_manifests
from gryvia_cli.names import kind_of
from gryvia_cli.options import FileOption, Output, YesOption
from gryvia_cli.output import print_value
from gryvia_cli.session import Session
from gryvia_cli.unknown_fields import unknown_fields
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_common.errors import Conflict, Gone, Terminal
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import GROUP, VERSION

POLL_SECONDS = 0.5

_UNCHECKED = re.compile(r"(, )?<nil>: Invalid value: \"?null\"?: some validation rules were not checked[^,\]]*")

JobNames = Annotated[list[str], typer.Argument(help="Names of jobs.")]


@verb(CLUSTER, NAMESPACE)
async def submit(
    session: Session,
    file: FileOption,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit code 1 unless it succeeds.")] = False,
    logs: Annotated[bool, typer.Option("--logs", help="Follow the logs (and wait for the end).")] = False,
) -> int:
    """Create the GryviaAIJobs of a manifest."""
    jobs = _jobs(read_manifests(file), session, str(file))
    async with session.kube() as kube:
        for job in jobs:
            await _create(kube, job)
        if not (wait or logs):
            return 0
        ends = [await _until_ended(kube, metadata(job)["namespace"], metadata(job)["name"], logs) for job in jobs]
        return 0 if all(ends) else 1


@verb(OUTPUT)
async def validate(session: Session, file: FileOption) -> int:
    """Check the manifests of a file without a cluster; workflows and registry entries as their services judge them."""
    from gryvia_cli.findings import finding

    now = datetime.now(UTC)
    findings = [finding(manifest, now) for manifest in read_manifests(file)]
    if session.output in (Output.JSON, Output.YAML):
        print_value(findings, session.output)
    else:
        for found in findings:
            print(f"{found['kind']} {found['name']}: {found['message']}")
    return 1 if any(found["valid"] is False for found in findings) else 0


@verb(CLUSTER, NAMESPACE)
async def cancel(session: Session, names: JobNames, yes: YesOption = False) -> int:
    """Cancel jobs: their pods are stopped, the objects stay. A job that has ended is left as it is."""
    if not yes:
        typer.confirm(f"Cancel {', '.join(names)}?", abort=True)
    async with session.kube() as kube:
        for name in names:
            print(await _cancel(kube, session.place, name))
    return 0


@verb(CLUSTER, NAMESPACE)
async def delete(
    session: Session,
    kind: Annotated[str, typer.Argument(help="job, quota, tuner, ...")],
    names: Annotated[list[str], typer.Argument(help="Names.")],
    yes: YesOption = False,
) -> int:
    """Delete objects and all that belongs to them."""
    found = kind_of(kind)
    if not yes:
        typer.confirm(f"Delete {found.name} {', '.join(names)}?", abort=True)
    async with session.kube() as kube:
        for name in names:
            try:
                await kube.delete(found.resource, session.place if found.namespaced else "", name)
            except Gone as error:
                where = f" in namespace {session.place}" if found.namespaced else ""
                raise Terminal(f"{kind} {name} not found{where}", reason="NotFound") from error
            print(f"{kind} {name} deleted")
    return 0


def _jobs(manifests: list[Json], session: Session, file: str) -> list[Json]:
    others = sorted({manifest["kind"] for manifest in manifests if manifest["kind"] != AI_JOB.name})
    if others:
        raise Terminal(
            f"{file} holds {', '.join(others)}; submit takes {AI_JOB.name} only, use `kubectl apply -f {file}`",
            reason="Usage",
        )
    for manifest in manifests:
        if manifest["apiVersion"] != f"{GROUP}/{VERSION}":
            raise Terminal(
                f"{file}: apiVersion {manifest['apiVersion']!r} is not served, write {GROUP}/{VERSION}", reason="Usage"
            )
        if strange := unknown_fields(AI_JOB, manifest):
            raise Terminal(
                f"{file}: unknown field {', '.join(strange)}; `kubectl explain` lists the fields", reason="Usage"
            )
        own = metadata(manifest).setdefault("namespace", session.place)
        if session.namespace is not None and own != session.namespace:
            raise Terminal(
                f"{file}: {metadata(manifest)['name']} says namespace {own}, the command line {session.namespace}; "
                "drop one of the two",
                reason="Usage",
            )
    return manifests


async def _create(kube: Kube, job: Json) -> None:
    name = metadata(job)["name"]
    try:
        await kube.create(AI_JOB.resource, job, manager="gryvia-cli")
    except Conflict as error:
        raise Terminal(
            f"a job {name} exists already in namespace {metadata(job)['namespace']}; "
            f"delete it (`gryvia delete job {name}`) or choose another name",
            reason="AlreadyExists",
        ) from error
    except Terminal as error:
        raise Terminal(f"job {name} was refused: {_plain(str(error))}", reason=error.reason) from error
    print(f"job {name} created", flush=True)


def _plain(refusal: str) -> str:
    """The API server's words about the fields, without those about itself."""
    text = refusal.partition(": ")[2] or refusal
    fields = text.partition(" is invalid: ")[2] or text
    return _UNCHECKED.sub("", fields.removeprefix("[").removesuffix("]"))


async def get_job(kube: Kube, namespace: str, name: str) -> Json:
    """Terminal when there is none."""
    try:
        return await kube.get(AI_JOB.resource, namespace, name)
    except Gone as error:
        raise Terminal(f"job {name} not found in namespace {namespace}", reason="NotFound") from error


async def _cancel(kube: Kube, namespace: str, name: str) -> str:
    """The phase is patched on the version that was read: a job that ends meanwhile has ended, not been cancelled."""
    while True:
        job = await get_job(kube, namespace, name)
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
        await follow_logs(kube, namespace, name, replica=0, may_lack_pod=True)
    said = ""
    while True:
        state = (await get_job(kube, namespace, name)).get("status") or {}
        phase = state.get("phase") or "Pending"
        message = f": {state['message']}" if state.get("message") else ""
        line = f"job {name}: {phase}{message}"
        if (line != said and not logs) or phase in ENDED:
            print(line, flush=True)
        said = line
        if phase in ENDED:
            return bool(phase == "Succeeded")
        await asyncio.sleep(POLL_SECONDS)
