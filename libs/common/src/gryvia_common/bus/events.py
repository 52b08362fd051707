"""The domain events: one class an event, so that docs/events.md and asyncapi.yaml can be generated from what is
really sent.

CloudEvents 1.0. The id is deterministic (uid, generation, transition): a retried emit has the same id, JetStream and
every consumer drop the second one. An event only speeds up what a resync would find too; nothing is decided from an
event alone.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat
from pydantic.alias_generators import to_camel


class DomainEvent(BaseModel):
    """Something that happened to one object. Subclasses set `noun` and `verb` and add their data fields; the
    docstring of the subclass is its documentation. `transition` tells apart events of one verb and generation (a
    trial's name, an attempt). `once`: it happens once in an object's life for each transition, so its id leaves the
    generation out: an edit of the spec between two tries of one emit must not make two events of it."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")

    noun: ClassVar[str]
    verb: ClassVar[str]
    once: ClassVar[bool] = False

    namespace: str = Field(description="Namespace of the object.")
    name: str = Field(description="Name of the object.")
    uid: str = Field(description="UID of the object; another object of the same name has another one.")
    generation: int = Field(description="metadata.generation the event belongs to.")
    transition: str = Field(default="", description="Tells apart events of one verb and generation.")

    @property
    def type(self) -> str:
        """`gryvia.<noun>.<verb>`."""
        return f"gryvia.{self.noun}.{self.verb}"

    @property
    def id(self) -> str:
        """Deterministic; never a random number."""
        generation = "" if self.once else str(self.generation)
        return "/".join(part for part in (self.uid, generation, self.noun, self.verb, self.transition) if part)


class JobEvent(DomainEvent):
    """What every job event carries."""

    noun: ClassVar[str] = "job"

    phase: str = Field(description="status.phase the job enters.")
    message: str = Field(default="", description="status.message: the reason for the phase.")
    metrics: dict[str, FiniteFloat] = Field(default_factory=dict, description="The last reported metrics by name.")


class JobStarted(JobEvent):
    """The job runs: its first pod is ready (or its first index has already succeeded)."""

    verb: ClassVar[str] = "started"
    once = True


class JobSucceeded(JobEvent):
    """The job ended well; `metrics` holds what it reported last."""

    verb: ClassVar[str] = "succeeded"
    once = True


class JobFailed(JobEvent):
    """The job ended badly; `message` says why (BackoffLimitExceeded, DeadlineExceeded, an invalid spec, …)."""

    verb: ClassVar[str] = "failed"
    once = True


class JobCancelled(JobEvent):
    """Somebody cancelled the job; its workload is removed, its volume kept."""

    verb: ClassVar[str] = "cancelled"
    once = True


class JobRejected(JobEvent):
    """The job was refused (a quota, a policy) and will not run."""

    verb: ClassVar[str] = "rejected"
    once = True


class JobPreempted(JobEvent):
    """The job gave way to another; its workload is removed, its volume kept, and it may run again."""

    verb: ClassVar[str] = "preempted"


class TrialEvent(DomainEvent):
    """What every trial event carries. `name` is the trial's (its job's) name and so is `transition`; `uid` and
    `generation` are the tuner's, who speaks for its trials."""

    noun: ClassVar[str] = "trial"
    once = True

    tuner: str = Field(description="Name of the tuner the trial belongs to.")
    number: int = Field(description="Number of the trial, from 0.")
    parameters: dict[str, str] = Field(default_factory=dict, description="Value of each parameter of the search space.")
    metric_name: str = Field(default="", description="objective.metricName.")
    metric_value: FiniteFloat | None = Field(
        default=None, description="The objective's value; absent when the trial reported none."
    )
    message: str = Field(default="", description="Why the trial failed, was stopped or has no value.")


class TrialStarted(TrialEvent):
    """The trial's job has been created."""

    verb: ClassVar[str] = "started"


class TrialCompleted(TrialEvent):
    """The trial's job succeeded; `metricValue` is its result (absent, with a message, when it reported none)."""

    verb: ClassVar[str] = "completed"


class TrialFailed(TrialEvent):
    """The trial gave no result: its job failed, was refused, cancelled, preempted, or vanished."""

    verb: ClassVar[str] = "failed"


class TrialStopped(TrialEvent):
    """The trial was ended early because others do better; `metricValue` is its last intermediate value."""

    verb: ClassVar[str] = "stopped"


class TunerEvent(DomainEvent):
    """What every tuner event carries."""

    noun: ClassVar[str] = "tuner"

    message: str = Field(default="", description="status.message.")
    best_trial: str = Field(default="", description="Name of the best trial so far; empty when none has a value.")
    best_value: FiniteFloat | None = Field(default=None, description="The best trial's objective value.")
    best_parameters: dict[str, str] = Field(default_factory=dict, description="The best trial's parameters.")
    trials_completed: int = Field(default=0, description="Trials that succeeded or were stopped early.")
    trials_failed: int = Field(default=0, description="Trials that failed.")


class TunerStarted(TunerEvent):
    """The search begins: the spec is valid and the first trials are about to be created."""

    verb: ClassVar[str] = "started"


class TunerCompleted(TunerEvent):
    """The search ended well; `bestTrial`, `bestValue` and `bestParameters` are its result."""

    verb: ClassVar[str] = "completed"


class TunerFailed(TunerEvent):
    """The search ended without a result, or its spec cannot be run; `message` says what to change."""

    verb: ClassVar[str] = "failed"


class WorkflowEvent(DomainEvent):
    """What every workflow event carries. `transition` begins with the number of the run, which tells the runs of a schedule
    apart."""

    noun: ClassVar[str] = "workflow"
    once = True

    run: int = Field(default=0, description="Number of the run; 0 without a schedule.")
    message: str = Field(default="", description="Why the phase is what it is.")


class WorkflowStarted(WorkflowEvent):
    """A run begins: the graph is valid and its first steps are about to be created."""

    verb: ClassVar[str] = "started"


class WorkflowStep(WorkflowEvent):
    """A step entered a phase (Running, Succeeded, Failed, Skipped), or an attempt of it failed and is tried again (Pending)."""

    verb: ClassVar[str] = "step"

    step: str = Field(description="Name of the step.")
    item: int | None = Field(default=None, description="Position in withItems; absent for the step as a whole.")
    phase: str = Field(description="Phase the step enters.")
    attempt: int = Field(default=0, description="Number of the attempt, from 0.")
    child: str = Field(default="", description="Name of the child object, or of the registry entry.")


class WorkflowSucceeded(WorkflowEvent):
    """The run ended and no step failed."""

    verb: ClassVar[str] = "succeeded"


class WorkflowFailed(WorkflowEvent):
    """The run ended with a failed step, or its spec cannot be run; `message` says what to change."""

    verb: ClassVar[str] = "failed"


class ModelEvent(DomainEvent):
    """What every model event carries. `name` is the registry entry's."""

    noun: ClassVar[str] = "model"

    model_name: str = Field(description="spec.modelName: the family.")
    version: str = Field(description="spec.version of the entry.")
    stage: str = Field(default="", description="Stage the entry is in now.")
    message: str = Field(default="", description="Why.")


class ModelRegistered(ModelEvent):
    """The entry is known and its files are named."""

    verb: ClassVar[str] = "registered"
    once = True


class ModelPromoted(ModelEvent):
    """The entry is its family's production entry now. `transition` is the number of the change in the family's record."""

    verb: ClassVar[str] = "promoted"
    once = True

    previous: str = Field(default="", description="Entry that was in production before; empty when none was.")
    auto_serve: bool = Field(default=False, description="spec.autoServe: serving begins, or moves to this entry.")


class ModelArchived(ModelEvent):
    """The entry ceased to be in production, or was archived by hand."""

    verb: ClassVar[str] = "archived"
    once = True

    replaced_by: str = Field(default="", description="Entry that took its place; empty when none did.")


class ModelRolledBack(ModelEvent):
    """The production entry gave its place back to what was there before; `replacedBy` is the entry that serves again."""

    verb: ClassVar[str] = "rolledback"
    once = True

    reason: str = Field(default="", description="PolicyBreached or Requested.")
    replaced_by: str = Field(default="", description="Entry that is in production again.")


CATALOGUE: tuple[type[DomainEvent], ...] = (
    JobStarted,
    JobSucceeded,
    JobFailed,
    JobCancelled,
    JobRejected,
    JobPreempted,
    TrialStarted,
    TrialCompleted,
    TrialFailed,
    TrialStopped,
    TunerStarted,
    TunerCompleted,
    TunerFailed,
    WorkflowStarted,
    WorkflowStep,
    WorkflowSucceeded,
    WorkflowFailed,
    ModelRegistered,
    ModelPromoted,
    ModelArchived,
    ModelRolledBack,
)
"""Every event the platform sends, in the order of the documentation."""


def event_class(type_name: str) -> type[DomainEvent] | None:
    """The class of a `gryvia.<noun>.<verb>`, None for one this version does not know."""
    return next((cls for cls in CATALOGUE if f"gryvia.{cls.noun}.{cls.verb}" == type_name), None)
