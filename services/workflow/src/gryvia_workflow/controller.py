"""The workflow service as one value: what it decides, what it owns, what it reads.

A step that runs names what it waits for in the status, so refs follow from the status alone: the pods of a job, the entry of a
register or registry step, the service that picks an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

from gryvia_common.errors import Gone
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW, GryviaWorkflowSpec, GryviaWorkflowStatus, StepType
from gryvia_common.kube.objects import key_of
from gryvia_common.kube.resources import CONFIG_MAPS, PODS
from gryvia_common.outbound.allowed import Allowed
from gryvia_common.outbound.client import Outbound
from gryvia_common.runtime.controller import ActionContext, Controller, Lookup, Ref, Selection
from gryvia_common.runtime.unparsed import unparsed
from gryvia_pipelines.conditions import compile_condition
from gryvia_pipelines.validation import Checked, check, step_type
from gryvia_workflow.attempts import LOOK
from gryvia_workflow.decide import Tools, decide
from gryvia_workflow.engine import Advance
from gryvia_workflow.run import Workflow
from gryvia_workflow.settings import WorkflowSettings
from gryvia_workflow.steps import approval, job, register, registry, script, webhook

LOOKED_FOR = (AI_JOB.resource, PODS, CONFIG_MAPS, MODEL_REGISTRY.resource, INFERENCE_SERVICE.resource)
COMPILED = 1024
CHECKED = 512


def controller(settings: WorkflowSettings) -> Controller[GryviaWorkflowSpec, GryviaWorkflowStatus]:
    """The caches live in this value, not in a module; they only save time."""
    tools = Tools(settings, Checks(), step_types(settings))
    return Controller(
        kind=WORKFLOW,
        decide=partial(decide, tools=tools),
        invalid=partial(unparsed, WORKFLOW, lambda status: bool(status.start_time)),
        children=(AI_JOB.resource, PODS, CONFIG_MAPS),
        ref_resources=(PODS, MODEL_REGISTRY.resource, INFERENCE_SERVICE.resource),
        refs=refs,
        indexes=(job.POD_INDEX,),
        actions={
            LOOK: look,
            webhook.CALL: webhook.Caller(Outbound(Allowed.parse(settings.workflow_webhook_allowed.split(",")))),
        },
    )


async def look(context: ActionContext, arguments: Mapping[str, object]) -> bool:
    """Whether the API server has it."""
    resource = next(one for one in LOOKED_FOR if one.plural == arguments["plural"])
    try:
        await context.kube.get(resource, key_of(context.raw).namespace, str(arguments["name"]))
    except Gone:
        return False
    return True


def step_types(settings: WorkflowSettings) -> Mapping[StepType, Advance]:
    return {
        "job": job.advance,
        "script": script.advance,
        "register": register.advance,
        "registry": registry.advance,
        "approval": approval.advance,
        "webhook": partial(webhook.advance, allowed=settings.workflow_allow_webhooks),
    }


class Checks:
    """Validation, once a generation: a run has many passes, and a condition takes a millisecond to compile."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Checked]] = {}
        self._compile = lru_cache(maxsize=COMPILED)(compile_condition)

    def __call__(self, workflow: Workflow) -> Checked:
        known = self._known.get(workflow.uid)
        if known is not None and known[0] == workflow.generation:
            return known[1]
        found = check(workflow.spec, workflow.raw["spec"], self._compile)
        self._known.pop(workflow.uid, None)
        while len(self._known) >= CHECKED:
            del self._known[next(iter(self._known))]
        self._known[workflow.uid] = (workflow.generation, found)
        return found


def refs(workflow: Workflow, get: Lookup) -> Iterator[Ref | Selection]:
    if workflow.status.phase != "Running":
        return
    namespace = workflow.namespace
    running = {one.name: one for one in workflow.status.step_statuses or () if one.phase == "Running"}
    for step in workflow.spec.steps:
        status = running.get(step.name)
        if status is None:
            continue
        kind = step_type(step)
        for one in status.items or (status,):
            child = one.job_name
            if one.phase != "Running" or not child:
                continue
            if kind == "job":
                yield job.pods_of(namespace, child)
            elif kind == "registry" and step.registry is not None and step.registry.service_name:
                yield Ref(INFERENCE_SERVICE.resource, namespace, child)
                service = get(INFERENCE_SERVICE.resource, namespace, child) or {}
                model = (service.get("spec") or {}).get("modelRef")
                if model:
                    yield Ref(MODEL_REGISTRY.resource, namespace, model)
            elif kind in ("register", "registry"):
                yield Ref(MODEL_REGISTRY.resource, namespace, child)
