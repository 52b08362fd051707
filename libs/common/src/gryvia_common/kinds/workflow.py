"""GryviaWorkflow: a graph of steps, run once or by a schedule.

The schema holds types and fixed sets; the graph itself (names, cycles, conditions, at most 100 steps) is judged by the
service, which answers with phase Failed and the condition DAGValid, as the contract says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.aijob import JobTemplate
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.modelregistry import ModelArtifacts, PromotionPolicy, RollbackPolicy, ServingConfig
from gryvia_common.kinds.wire import ATOMIC, AnyJson, Bool, Cel, Fact, Int32, Int64, Number, Time, keyed_by

StepType = Literal["job", "script", "webhook", "register", "registry", "approval"]
StepPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Skipped"]
STEP_ENDED = frozenset({"Succeeded", "Failed", "Skipped"})
BLOCKS: Mapping[StepType, str] = {
    "job": "jobTemplate",
    "script": "script",
    "webhook": "webhook",
    "register": "register",
    "registry": "registry",
}
"""The block that says what a step of this type does; an approval has none."""

WorkflowPhase = Literal["Pending", "Running", "Scheduled", "Succeeded", "Failed"]
Items = Annotated[list[AnyJson] | str, Fact("anyOf", x__kubernetes__preserve__unknown__fields=True)]

STEPS_BOUND = 1000
"""An API server budgets CEL rules by the longest list there could be, so it needs a bound; the contract's limit of 100 is
the service's to state, with phase Failed."""

ATTEMPT = "Number of the attempt, 0 for the first: the -r<attempt> in the child's name."
TIMES_LOST = "Attempts that the infrastructure lost; they use up no retry."
OUTPUTS = "Reported values; the beginning of them where outputsIn is set."
OUTPUTS_IN = "ConfigMap with the whole outputs, where they are too long for the status."


class Script(Model):
    """A command in a locked-down pod."""

    image: str = Field(description="Container image.")
    command: list[str] = Field(description="Command; not empty.")
    args: list[str] | None = Field(None, description="Arguments.")


class Webhook(Model):
    """One HTTP call."""

    url: str = Field(description="Target URL.")
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = Field(None, description="HTTP method.")
    headers: dict[str, str] | None = Field(None, description="Request headers.")
    body: str | None = Field(None, description="Request body.")
    success_condition: str | None = Field(
        None, description="What counts as success, of the form status == <code>. Default any 2xx."
    )


class Register(Model):
    """Creates a registry entry."""

    name: str | None = Field(None, description="Name of the entry. Default <workflow>-<step>[-n<run>].")
    model_name: str = Field(description="Model family.")
    version: str = Field(description="Version of the entry.")
    artifacts: ModelArtifacts = Field(description="Where the files are.")
    stage: Literal["dev", "staging"] = Field("staging", description="Stage it begins in. Default staging.")
    description: str | None = Field(None, description="Free text.")
    metadata: dict[str, str] | None = Field(None, description="Copied to the entry.")
    auto_serve: Bool = Field(False, description="Copied to the entry. Default false.")
    serving_config: ServingConfig | None = Field(None, description="Copied to the entry.")
    promotion_policy: PromotionPolicy | None = Field(None, description="Copied to the entry.")
    rollback_policy: RollbackPolicy | None = Field(None, description="Copied to the entry.")


class RegistryChange(Model):
    """Changes a registry entry."""

    entry: str | None = Field(None, description="Name of the entry; this or serviceName.")
    service_name: str | None = Field(None, description="Picks the entry that this inference service serves.")
    action: Literal["updateMetadata", "rollback"] = Field(description="What to do.")
    metadata: dict[str, str] | None = Field(None, description="Merged into the entry's metadata by updateMetadata.")

    rules = (Cel("has(self.entry) != has(self.serviceName)", "registry needs either entry or serviceName"),)


class Step(Model):
    """One step of the graph."""

    name: str = Field(description="Name of the step, a DNS label, unique in the workflow.")
    type: StepType | None = Field(None, description="Kind of step. Default by the block that is set.")
    depends_on: list[str] | None = Field(None, description="Steps that must have ended before.")
    condition: str | None = Field(
        None,
        description="CEL guard, judged when the dependencies have ended, over steps.<name>.status,"
        " steps.<name>.outputs.<key> and parameters.<name>.",
    )
    job_template: JobTemplate | None = Field(None, description="The job of a job step.")
    script: Script | None = Field(None, description="The command of a script step.")
    webhook: Webhook | None = Field(None, description="The call of a webhook step.")
    register_: Register | None = Field(None, alias="register", description="The entry a register step creates.")
    registry: RegistryChange | None = Field(None, description="The change a registry step makes.")
    approvers: list[str] | None = Field(None, description="Who may approve an approval step; anyone when left out.")
    finally_: Bool | None = Field(
        None, alias="finally", description="Run at the end whatever happened before, after all other steps."
    )
    with_items: Items | None = Field(
        None,
        description="Run the step once an item: a list, or a placeholder for a parameter or an earlier step's output"
        " that holds a JSON list. {{item}} is the item.",
    )
    retries: Int32 = Field(0, description="Extra attempts, 0 to 10. Default 0.")
    retry_backoff_seconds: Int32 = Field(0, description="Wait before the next attempt. Default 0.")
    retry_backoff_factor: Number | None = Field(None, ge=1, description="Growth of the wait per attempt. Default 1.")
    retry_backoff_max_seconds: Int32 | None = Field(None, ge=0, description="Longest wait.")
    timeout_seconds: Int64 = Field(0, description="Limit per attempt; 0 is none.")


class GryviaWorkflowSpec(Spec):
    """The spec of a GryviaWorkflow."""

    see = "GryviaWorkflow"

    steps: list[Step] = Field(max_length=STEPS_BOUND, description="Steps of the graph, 1 to 100.")
    parameters: dict[str, str] | None = Field(None, description="Env of job steps, and values of placeholders.")
    schedule: str | None = Field(None, description="Five-field cron expression: run the graph again at these times.")
    time_zone: str | None = Field(None, description="IANA time zone of the schedule. Default UTC.")
    catch_up: Literal["none", "latest", "all"] | None = Field(
        None, description="Which runs missed during an outage are made up for. Default latest."
    )
    catch_up_limit: Int32 | None = Field(None, ge=1, description="Most runs made up for with catchUp all. Default 10.")
    suspend: Bool | None = Field(None, description="Start no new scheduled run.")


class Approval(Model):
    """A person's answer."""

    decision: Literal["Approved", "Rejected"] = Field(description="What was decided.")
    by: str = Field(description="Who decided.")
    at: Time = Field(description="When.")
    comment: str | None = Field(None, description="Why, if they said so.")


class Cancellation(Model):
    """A run that was cancelled."""

    by: str | None = Field(None, description="Who did it, as they said.")
    at: Time = Field(description="When.")


class ItemStatus(Model):
    """One item of a step with withItems."""

    index: Int32 = Field(description="Position in the list, from 0.")
    phase: StepPhase = Field(description="Where the item is.")
    job_name: str | None = Field(None, description="Child of the item.")
    start_time: Time | None = Field(None, description="When the attempt began.")
    completion_time: Time | None = Field(None, description="When it, or its failed attempt, ended.")
    attempt: Int32 | None = Field(None, description=ATTEMPT)
    retries_attempted: Int32 | None = Field(None, description="Extra attempts so far.")
    times_lost: Int32 | None = Field(None, description=TIMES_LOST)
    outputs: dict[str, str] | None = Field(None, description=OUTPUTS)
    outputs_in: str | None = Field(None, description=OUTPUTS_IN)
    message: str | None = Field(None, description="Why the phase is what it is.")


class StepStatus(Model):
    """One step of the current run."""

    name: str = Field(description="Name of the step.")
    phase: StepPhase = Field(description="Where the step is.")
    job_name: str | None = Field(None, description="Child job, script pod, or registered entry.")
    start_time: Time | None = Field(None, description="When the attempt began.")
    completion_time: Time | None = Field(None, description="When the step, or its failed attempt, ended.")
    attempt: Int32 | None = Field(None, description=ATTEMPT)
    retries_attempted: Int32 | None = Field(None, description="Extra attempts so far.")
    times_lost: Int32 | None = Field(None, description=TIMES_LOST)
    outputs: dict[str, str] | None = Field(None, description=OUTPUTS)
    outputs_in: str | None = Field(None, description=OUTPUTS_IN)
    message: str | None = Field(None, description="Why the phase is what it is.")
    approval: Approval | None = Field(None, description="Who answered an approval step, and when.")
    items: Annotated[list[ItemStatus], keyed_by("index")] | None = Field(None, description="Items of withItems.")


class GryviaWorkflowStatus(Status):
    """The status of a GryviaWorkflow."""

    phase: WorkflowPhase | None = Field(None, description="Where the workflow is. Scheduled: between two runs.")
    step_statuses: Annotated[list[StepStatus], keyed_by("name")] | None = Field(None, description="Steps of this run.")
    steps_total: Int32 | None = Field(None, description="Steps in the graph.")
    steps_completed: Int32 | None = Field(None, description="Steps of this run that have ended.")
    start_time: Time | None = Field(None, description="When this run began.")
    completion_time: Time | None = Field(None, description="When this run ended.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    resumed_by: str | None = Field(
        None,
        description="Value of the annotation gryvia.io/retry-failed that was acted on, or stood there at the start.",
    )
    run_requested: str | None = Field(
        None,
        description="Value of the annotation gryvia.io/run-requested that was acted on, or stood there at the start.",
    )
    cancelled: Cancellation | None = Field(None, description="That this run was cancelled.")
    run: Int32 | None = Field(None, description="Number of the run; the first is 1, without a schedule 0.")
    last_schedule_time: Time | None = Field(None, description="Scheduled time of this run.")
    next_schedule_time: Time | None = Field(None, description="When the next run is due.")
    missed_runs: Int32 | None = Field(None, description="Scheduled times that were missed and not made up for.")
    pending_runs: Annotated[list[Time], ATOMIC] | None = Field(
        None, description="Missed times still to be made up for."
    )


WORKFLOW = Kind(
    name="GryviaWorkflow",
    plural="gryviaworkflows",
    spec=GryviaWorkflowSpec,
    status=GryviaWorkflowStatus,
    summary="A graph of steps: jobs, scripts, calls, approvals and registry changes, run once or by a schedule.",
    columns=(
        Column("Steps", ".status.stepsTotal", "integer"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    label="workflow",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata:
  name: nightly
spec:
  schedule: "0 3 * * *"
  timeZone: Europe/Berlin
  parameters:
    EPOCHS: "5"
  steps:
    - name: train
      jobTemplate:
        type: training
        gpus: 0
        image: python:3.11-slim
        command: ["python", "-c", "print('trained')"]
      retries: 2
      retryBackoffSeconds: 10
    - name: notify
      dependsOn: [train]
      condition: steps.train.status == 'Succeeded'
      script:
        image: python:3.11-slim
        command: ["python", "-c", "print('done')"]
""",
        conditions=(
            ("DAGValid", "Valid, or Invalid with what is wrong in the graph."),
            ("StepsRunning", "StepsActive while a step runs."),
            ("WorkflowComplete", "The run has ended; the reason is the phase."),
            ("FieldsIgnored", "True names the fields that have no effect in this combination."),
            ("SpecPending", "The spec was changed after a run without a schedule ended; how to run it."),
        ),
        children=(
            ("GryviaAIJob `<workflow>-<step>[-n<run>][-r<attempt>]`", "A job step."),
            ("Pod of the same name", "A script step."),
            ("GryviaModelRegistry", "A register step; not owned, it outlives the workflow."),
            ("ConfigMap `<workflow>-<step>-outputs[-n<run>]`", "Outputs that are too long for the status."),
            ("ConfigMap `<workflow>-run-n<run>`", "The status of an earlier run; the last ten are kept."),
        ),
        labels=(
            ("workflow", "Name of the workflow."),
            ("step", "Name of the step."),
            ("run", "Number of the run."),
            ("component", "workflow-step or workflow-register."),
        ),
        annotations=(
            ("approval-<step>", 'Answer to an approval step: {"decision": "Approved", "by": "ann", "comment": "..."}.'),
            ("retry-failed", "Resume a failed run from its failed steps; any new value."),
            ("cancel", 'Cancel the run that is under way: true, or {"by": "ann"}. Taken off once acted on.'),
            ("run-requested", "Run once more, at once or right after the run that is under way; any new value."),
            ("source-model", "Model that a model watch found."),
            ("source-revision", "Its revision."),
        ),
    ),
)
