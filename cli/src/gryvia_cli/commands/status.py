"""`gryvia status`: how one job, study or pipeline is doing, or, without a name, what the namespace is doing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from gryvia_cli.options import AllNamespaces, Output
from gryvia_cli.output import age, console, print_table, print_value
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_cli.workflow_text import phase_of, steps_of
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata

TUNER_HEADERS = ("TUNER", "ALGORITHM", "PHASE", "DONE", "RUNNING", "FAILED", "BEST", "MESSAGE")


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def status(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(help="Name of a job, a tuner or a workflow; everything if none.")
    ] = None,
    all_namespaces: AllNamespaces = False,
) -> int:
    """How a job, a study or a pipeline is doing: phase, reason, progress. Without a name: all of them at a glance."""
    async with session.kube() as kube:
        if name is None:
            await _glance(session, kube, None if all_namespaces else session.place)
        else:
            await _one(session, kube, name)
    return 0


async def _one(session: Session, kube: Kube, name: str) -> None:
    obj = await _find(kube, session.place, name)
    state: dict[str, Any] = obj.get("status") or {}
    if session.output in (Output.JSON, Output.YAML):
        print_value(state, session.output)
        return
    facts = {AI_JOB.name: job_facts, AUTO_TUNER.name: tuner_facts, WORKFLOW.name: workflow_facts}[obj["kind"]]
    print_table(console(color=session.color), ("FIELD", "VALUE"), facts(obj, state))


async def _find(kube: Kube, namespace: str, name: str) -> Json:
    """The job of that name, else the tuner, else the workflow. Terminal when there is none of them."""
    for resource in (AI_JOB.resource, AUTO_TUNER.resource, WORKFLOW.resource):
        try:
            return {"kind": resource.kind, **await kube.get(resource, namespace, name)}
        except Gone:
            continue
    raise Terminal(f"no job, no tuner and no workflow {name} in namespace {namespace}", reason="NotFound")


async def _glance(session: Session, kube: Kube, namespace: str | None) -> None:
    jobs = await kube.list(AI_JOB.resource, namespace)
    tuners = await kube.list(AUTO_TUNER.resource, namespace)
    workflows = await kube.list(WORKFLOW.resource, namespace)
    phases, runs = Counter(map(phase_of, jobs)), Counter(map(phase_of, workflows))
    if session.output in (Output.JSON, Output.YAML):
        studies = [{"name": metadata(one)["name"], **_progress(one)} for one in tuners]
        found = {"jobs": dict(sorted(phases.items())), "tuners": studies, "workflows": dict(sorted(runs.items()))}
        print_value(found, session.output)
        return
    out = console(color=session.color)
    where = "everywhere" if namespace is None else f"in namespace {namespace}"
    for what, counted in (("jobs", phases), ("workflows", runs)):
        counts = ", ".join(f"{count} {phase}" for phase, count in sorted(counted.items())) or "none"
        out.print(f"{what} {where}: {counts}", soft_wrap=True)
    if tuners:
        print_table(out, TUNER_HEADERS, [_tuner_row(one) for one in tuners])
    else:
        out.print(f"tuners {where}: none", soft_wrap=True)


def _progress(tuner: Json) -> Json:
    state, spec = tuner.get("status") or {}, tuner.get("spec") or {}
    return {
        "algorithm": spec.get("searchAlgorithm"),
        "phase": state.get("phase") or "Pending",
        "trialsDone": state.get("trialsCompleted", 0) + state.get("trialsFailed", 0),
        "maxTrials": spec.get("maxTrials"),
        "trialsRunning": state.get("trialsRunning", 0),
        "trialsFailed": state.get("trialsFailed", 0),
        "best": (state.get("bestTrial") or {}).get("metricValue"),
        "message": state.get("message") or "",
    }


def _tuner_row(tuner: Json) -> tuple[str, ...]:
    found = _progress(tuner)
    best = "" if found["best"] is None else f"{found['best']:.6g}"
    done = f"{found['trialsDone']}/{found['maxTrials']}"
    counts = (done, str(found["trialsRunning"]), str(found["trialsFailed"]))
    return (metadata(tuner)["name"], str(found["algorithm"]), found["phase"], *counts, best, found["message"])


def job_facts(job: Json, state: dict[str, Any]) -> list[tuple[str, str]]:
    facts = _common_facts(job, state)
    for key, title in (("replicasReady", "pods ready"), ("retries", "retries"), ("gpusAllocated", "GPUs")):
        if state.get(key):
            facts.append((title, str(state[key])))
    metrics = (state.get("metrics") or {}).get("values") or {}
    facts += [(f"metric {name}", f"{value:g}") for name, value in sorted(metrics.items())]
    return facts + _conditions(state)


def tuner_facts(tuner: Json, state: dict[str, Any]) -> list[tuple[str, str]]:
    found = _progress(tuner)
    objective = (tuner.get("spec") or {}).get("objective") or {}
    facts = _common_facts(tuner, state)
    facts.append(("objective", f"{objective.get('direction')} {objective.get('metricName')}"))
    running = f"{found['trialsRunning']} running, {found['trialsFailed']} failed"
    facts.append(("trials", f"{found['trialsDone']} of {found['maxTrials']} done, {running}"))
    best = state.get("bestTrial") or {}
    if best:
        chosen = ", ".join(f"{key}={value}" for key, value in sorted(best.get("parameters", {}).items()))
        facts.append(("best", f"{found['best']:.6g} by {best['name']}: {chosen}"))
    return facts + _conditions(state)


def workflow_facts(workflow: Json, state: dict[str, Any]) -> list[tuple[str, str]]:
    facts = _common_facts(workflow, state)
    total = state.get("stepsTotal", len((workflow.get("spec") or {}).get("steps") or []))
    facts.append(("steps", f"{state.get('stepsCompleted', 0)} of {total} done"))
    facts += [("run", str(state["run"]))] if state.get("run") else []
    under_way = [step.name for step in steps_of(workflow) if step.phase == "Running"]
    facts += [("under way", ", ".join(under_way))] if under_way else []
    return facts + _conditions(state)


def _common_facts(obj: Json, state: dict[str, Any]) -> list[tuple[str, str]]:
    now = datetime.now(UTC)
    facts = [("name", metadata(obj)["name"]), ("phase", state.get("phase") or "Pending")]
    facts += [("message", state["message"])] if state.get("message") else []
    for key, title in (("startTime", "started"), ("completionTime", "ended")):
        if state.get(key):
            facts.append((title, f"{state[key]} ({age(state[key], now)} ago)"))
    return facts


def _conditions(state: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (one["type"], f"{one['status']} {one['reason']} {one.get('message', '')}".strip())
        for one in state.get("conditions") or []
    ]
