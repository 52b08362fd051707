"""`gryvia workflows`: what a pipeline does, its graph, and a person's part in it: approve, suspend; run, stop and retry are in
workflow_asking.py."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gryvia_cli.approval import Decision, annotation_of, answer, approver, may_answer
from gryvia_cli.commands.read import show_list
from gryvia_cli.commands.workflow_asking import WaitOption, WorkflowName, retry, run, stop
from gryvia_cli.commands.workflow_logs import logs
from gryvia_cli.editing import edit, read
from gryvia_cli.manifests import read_manifests
from gryvia_cli.options import AllNamespaces, Output
from gryvia_cli.output import console, print_table, print_value, say
from gryvia_cli.pipeline import StepView
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_cli.workflow_approval import asks, to_answer
from gryvia_cli.workflow_graph import dot, drawn, mermaid
from gryvia_cli.workflow_runs import all_runs, with_run
from gryvia_cli.workflow_text import (
    RUN_HEADERS,
    STEP_HEADERS,
    headline,
    output_lines,
    run_row,
    run_succeeded,
    step_rows,
    steps_of,
)
from gryvia_cli.workflow_watch import POLL_SECONDS, until_ended
from gryvia_common.errors import Terminal
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json, metadata

workflows = typer.Typer(
    name="workflows",
    help="Pipelines: their runs, their graph and logs, run, stop, retry, approvals.",
    no_args_is_help=True,
)

RunOption = Annotated[
    int | None, typer.Option("--run", min=0, help="An earlier run; `gryvia workflows runs` lists them.")
]
CommentOption = Annotated[str, typer.Option("--comment", help="Why; it is kept with the answer.")]

WhenAskedOption = Annotated[bool, typer.Option("--when-asked", help="Wait until the run asks, or has ended.")]


class GraphFormat(StrEnum):
    """How `graph` draws."""

    TEXT = "text"
    DOT = "dot"
    MERMAID = "mermaid"


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def list_workflows(session: Session, all_namespaces: AllNamespaces = False) -> int:
    """List workflows; the same as `gryvia list workflows`."""
    return await show_list(session, "workflows", all_namespaces=all_namespaces)


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def get_workflow(session: Session, name: WorkflowName, run: RunOption = None, wait: WaitOption = False) -> int:
    """Show a workflow's run: its steps, how long they took, why they failed, what they handed on."""
    if wait and run is not None:
        raise Terminal("--wait is for the current run; leave out --run", reason="Usage")
    async with session.kube() as kube:
        if wait:
            obj = await until_ended(kube, session, name)
        else:
            obj = await with_run(kube, session.place, name, run)
    metadata(obj).pop("managedFields", None)
    if session.output in (Output.JSON, Output.YAML):
        print_value(obj, session.output)
    else:
        _show(session, obj)
    return 0 if not wait or run_succeeded(obj.get("status") or {}) else 1


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def runs(session: Session, name: WorkflowName) -> int:
    """List the runs of a workflow that are kept, newest first."""
    async with session.kube() as kube:
        found = await all_runs(kube, session.place, name)
    if session.output in (Output.JSON, Output.YAML):
        print_value([obj["status"] for obj in found], session.output)
    elif not found:
        print(f"Workflow {name} has not run yet.")
    else:
        now = datetime.now(UTC)
        print_table(console(color=session.color), RUN_HEADERS, [run_row(obj, now) for obj in found])
    return 0


@verb(CLUSTER, NAMESPACE)
async def graph(
    session: Session,
    name: Annotated[str | None, typer.Argument(help="Name of the workflow; none with --file.")] = None,
    run: RunOption = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Draw what a manifest says, without a cluster.")
    ] = None,
    form: Annotated[GraphFormat, typer.Option("--output", "-o", help="How to draw.")] = GraphFormat.TEXT,
) -> int:
    """Draw a workflow's steps and what waits for what, with their states."""
    if (name is None) == (file is None):
        raise Terminal("graph needs either the name of a workflow or a manifest with --file", reason="Usage")
    if file is None:
        async with session.kube() as kube:
            found = [await with_run(kube, session.place, name or "", run)]
    else:
        found = _of_file(file)
    for obj in found:
        _draw(session, metadata(obj)["name"], steps_of(obj), form)
    return 0


@verb(CLUSTER, NAMESPACE)
async def approve(
    session: Session,
    name: WorkflowName,
    step: Annotated[str | None, typer.Argument(help="Name of the step; the one that waits if none.")] = None,
    comment: CommentOption = "",
    when_asked: WhenAskedOption = False,
) -> int:
    """Let a run go on that waits for approval."""
    return await _answer(session, name, step, "Approved", comment, when_asked)


@verb(CLUSTER, NAMESPACE)
async def reject(
    session: Session,
    name: WorkflowName,
    step: Annotated[str | None, typer.Argument(help="Name of the step; the one that waits if none.")] = None,
    comment: CommentOption = "",
    when_asked: WhenAskedOption = False,
) -> int:
    """Fail the step that waits for approval."""
    return await _answer(session, name, step, "Rejected", comment, when_asked)


@verb(CLUSTER, NAMESPACE)
async def suspend(session: Session, name: WorkflowName) -> int:
    """Start no more runs of the schedule; a run under way goes on."""
    return await _suspend(session, name, suspended=True)


@verb(CLUSTER, NAMESPACE)
async def resume(session: Session, name: WorkflowName) -> int:
    """Go on with the schedule at its next time; runs of the meantime are not made up for."""
    return await _suspend(session, name, suspended=False)


async def _answer(
    session: Session, name: str, step: str | None, decision: Decision, comment: str, when_asked: bool
) -> int:
    async with session.kube() as kube:
        by = await approver(kube)
        while when_asked:
            if asks(await read(kube, WORKFLOW, session.place, name), step):
                break
            await asyncio.sleep(POLL_SECONDS)
        chosen: list[str] = []

        def change(obj: Json) -> Json:
            wanted = to_answer(obj, step)
            spec = next(one for one in obj["spec"]["steps"] if one["name"] == wanted.name)
            may_answer(by, spec.get("approvers"), f"step {wanted.name}")
            chosen[:] = [wanted.name]
            return answer(annotation_of(wanted.name), decision, by, comment)

        await edit(kube, WORKFLOW, session.place, name, change)
    print(f"workflow {name}: step {chosen[0]} {decision} by {by}")
    return 0


async def _suspend(session: Session, name: str, *, suspended: bool) -> int:
    def change(obj: Json) -> Json | None:
        spec = obj.get("spec") or {}
        if not spec.get("schedule"):
            raise Terminal(
                f"workflow {name} has no schedule and runs once; to stop the run, `gryvia workflows stop {name}`",
                reason="NoSchedule",
            )
        return None if bool(spec.get("suspend")) == suspended else {"spec": {"suspend": suspended}}

    async with session.kube() as kube:
        await edit(kube, WORKFLOW, session.place, name, change)
    print(f"workflow {name} {'suspended' if suspended else 'resumed'}")
    return 0


def _of_file(file: Path) -> list[Json]:
    found = [manifest for manifest in read_manifests(file) if manifest["kind"] == WORKFLOW.name]
    if not found:
        raise Terminal(f"{file} holds no {WORKFLOW.name}", reason="Usage")
    return found


def _draw(session: Session, name: str, steps: list[StepView], form: GraphFormat) -> None:
    if form == GraphFormat.MERMAID:
        print(mermaid(steps), end="")
    elif form == GraphFormat.DOT:
        print(dot(steps, name), end="")
    else:
        out = console(color=session.color)
        for line in drawn(steps, datetime.now(UTC), out.width):
            out.print(line, soft_wrap=True)


def _show(session: Session, obj: Json) -> None:
    now = datetime.now(UTC)
    out = console(color=session.color)
    out.print(headline(obj, now), markup=False, soft_wrap=not out.is_terminal)
    print_table(out, STEP_HEADERS, step_rows(obj, now))
    if lines := output_lines(obj):
        say(out, "")
        say(out, "outputs")
        for line in lines:
            out.print(f"  {line}", markup=False, soft_wrap=not out.is_terminal)


workflows.command("list")(list_workflows)
workflows.command("get")(get_workflow)
workflows.command()(runs)
workflows.command()(graph)
workflows.command()(logs)
workflows.command()(run)
workflows.command()(stop)
workflows.command()(retry)
workflows.command()(approve)
workflows.command()(reject)
workflows.command()(suspend)
workflows.command()(resume)
