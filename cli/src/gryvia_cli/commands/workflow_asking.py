"""`gryvia workflows run`, `stop`, `retry`: what a person asks of a workflow's runs. Each is an annotation that the service acts on
once; what it would not act on is refused here, with the reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated

import typer

from gryvia_cli.editing import edit
from gryvia_cli.identity import who_am_i
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, verb
from gryvia_cli.workflow_approval import CANCEL, RETRY, RUN, asked_for
from gryvia_cli.workflow_text import has_ended, headline, phase_of, run_succeeded, steps_of
from gryvia_cli.workflow_watch import until_ended
from gryvia_common.errors import Terminal
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.objects import Json, annotations_of, metadata

WorkflowName = Annotated[str, typer.Argument(help="Name of the workflow.")]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait", "--watch", "-w", help="Print each change until the run has ended; exit code 1 unless it succeeds."
    ),
]
StopWaitOption = Annotated[bool, typer.Option("--wait", "-w", help="Print each change until the run has ended.")]


@verb(CLUSTER, NAMESPACE)
async def retry(session: Session, name: WorkflowName, wait: WaitOption = False) -> int:
    """Resume a failed run from its failed steps; what succeeded stays as it is."""

    def change(obj: Json) -> Json:
        state = obj.get("status") or {}
        if not has_ended(obj) or run_succeeded(state):
            raise Terminal(
                f"workflow {name} is {phase_of(obj)} and has nothing to retry; only a run that failed is resumed",
                reason="NotFailed",
            )
        if wrong := _wrong(obj):
            ran = "cannot go on" if state.get("startTime") else "never ran"
            raise Terminal(f"workflow {name} {ran}, its spec is wrong: {wrong}; mend and apply it", reason="Invalid")
        return _request(obj, RETRY)

    async with session.kube() as kube:
        before = await edit(kube, WORKFLOW, session.place, name, change)
        failed = [step.name for step in steps_of(before) if step.phase == "Failed"]
        print(f"workflow {name}: retrying {', '.join(failed) or 'the run'}", flush=True)
        if not wait:
            return 0
        wanted = annotations_of(before)[RETRY]
        obj = await until_ended(kube, session, name, before, lambda obj: obj["status"].get("resumedBy") == wanted)
        print(headline(obj, datetime.now(UTC)))
    return 0 if run_succeeded(obj.get("status") or {}) else 1


@verb(CLUSTER, NAMESPACE)
async def run(session: Session, name: WorkflowName, wait: WaitOption = False) -> int:
    """Run a workflow now: one that has ended once more, one with a schedule between its times."""

    def change(obj: Json) -> Json:
        if has_ended(obj) and (wrong := _wrong(obj)):
            raise Terminal(
                f"workflow {name} cannot run, its spec is wrong: {wrong}; mend and apply it", reason="Invalid"
            )
        return _request(obj, RUN)

    async with session.kube() as kube:
        before = await edit(kube, WORKFLOW, session.place, name, change)
        print(f"workflow {name}: {_begins(before)}", flush=True)
        if not wait:
            return 0
        wanted = annotations_of(before)[RUN]
        obj = await until_ended(kube, session, name, before, lambda obj: obj["status"].get("runRequested") == wanted)
        if wrong := _wrong(obj):
            raise Terminal(f"workflow {name} was not run, its spec is wrong: {wrong}", reason="Invalid")
        print(headline(obj, datetime.now(UTC)))
    return 0 if run_succeeded(obj.get("status") or {}) else 1


@verb(CLUSTER, NAMESPACE)
async def stop(session: Session, name: WorkflowName, wait: StopWaitOption = False) -> int:
    """Cancel the run that is under way: its steps are stopped, finally steps still run, the workflow stays."""

    def change(obj: Json) -> Json | None:
        if has_ended(obj) and not asked_for(obj):
            raise Terminal(f"workflow {name} is {phase_of(obj)}; there is no run to stop", reason="NotRunning")
        state = obj.get("status") or {}
        return None if state.get("cancelled") and not has_ended(obj) else {"metadata": {"annotations": {CANCEL: by}}}

    async with session.kube() as kube:
        person, _ = await who_am_i(kube)
        by = json.dumps({"by": person}, ensure_ascii=False)
        before = await edit(kube, WORKFLOW, session.place, name, change)
        last = [step.name for step in steps_of(before) if step.last and step.phase in ("", "Pending", "Running")]
        print(f"workflow {name}: stopping" + (f"; {', '.join(last)} still to run" if last else ""), flush=True)
        if wait:
            obj = await until_ended(kube, session, name, before, lambda obj: CANCEL not in annotations_of(obj))
            print(headline(obj, datetime.now(UTC)))
    return 0


def _request(obj: Json, annotation: str) -> Json:
    """A wish to cancel that nobody has acted on yet was for what has ended."""
    wanted: Json = {annotation: f"cli at {datetime.now(UTC).isoformat()}"}
    if has_ended(obj) and CANCEL in annotations_of(obj):
        wanted[CANCEL] = None
    return {"metadata": {"annotations": wanted}}


def _begins(obj: Json) -> str:
    if has_ended(obj):
        return "run asked for"
    if not (obj.get("status") or {}).get("startTime"):
        return "its first run is about to begin"
    return "run asked for; it begins when the one that is under way has ended"


def _wrong(obj: Json) -> str:
    """What the service said of the spec as it is now; empty when it is well, or not judged yet."""
    state = obj.get("status") or {}
    generation = metadata(obj).get("generation")
    if state.get("observedGeneration", generation) != generation:
        return ""
    conditions = {one.get("type"): one for one in state.get("conditions") or []}
    valid = conditions.get("DAGValid") or {}
    return str(valid.get("message") or state.get("message") or "unknown") if valid.get("status") == "False" else ""
