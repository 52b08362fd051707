"""GryviaAutoTuner: a hyperparameter study, one GryviaAIJob a trial.

What only the service can judge is accepted here and ends in phase Failed with a message: a parameter without bounds, a
grid too large, a template without image, a direction that is none. So `direction` is text, `maxTrials` has no bounds.
`status.trials` is a bounded window; the whole history is read through the API and the CLI.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.aijob import JobTemplate
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import SET, Int32, Number, Time, keyed_by

SearchAlgorithm = Literal["grid", "random", "bayesian", "asha"]
TunerPhase = Literal["Pending", "Running", "Succeeded", "Failed"]
TrialPhase = Literal["Pending", "Running", "Succeeded", "Failed", "Stopped"]


class Parameter(Model):
    """One dimension of the search space."""

    name: str = Field(description="Hyperparameter name; the trial reads it as HP_<name>.")
    type: Literal["float", "int", "categorical"] = Field(description="Value type.")
    min: Number | None = Field(None, description="Lower bound; needed unless values are given.")
    max: Number | None = Field(None, description="Upper bound; needed unless values are given.")
    scale: Literal["linear", "log"] = Field("linear", description="How a float is sampled. Default linear.")
    step: Int32 = Field(1, description="Distance between the values of an int. Default 1.")
    values: list[str] | None = Field(None, description="The values of a categorical or discrete parameter.")


class Objective(Model):
    """What is optimised."""

    metric_name: str = Field(description="Metric to optimise, as the trial reports it.")
    direction: str = Field(description="minimize or maximize.")
    goal: Number | None = Field(None, description="Stop the study as soon as a trial reaches this value.")


class AshaConfig(Model):
    """Rungs of the asha algorithm: minResource, minResource*reductionFactor, ... up to maxEpochs."""

    max_epochs: Int32 = Field(description="Largest rung.")
    reduction_factor: Int32 = Field(3, description="Growth of the rungs and share kept (1/factor). 1 or less means 3.")
    min_resource: Int32 = Field(1, description="First rung. Default 1.")


class GryviaAutoTunerSpec(Spec):
    """The spec of a GryviaAutoTuner."""

    search_algorithm: SearchAlgorithm = Field(
        description="Search strategy. bayesian chooses between TPE and CMA-ES by the space and the results so far."
    )
    parameter_space: list[Parameter] = Field(description="Search space.")
    objective: Objective = Field(description="What is optimised.")
    max_trials: Int32 = Field(description="Trials in total.")
    parallelism: Int32 = Field(1, description="Trials at the same time. Default 1; capped by the service's limit.")
    early_stopping_rounds: Int32 = Field(
        0, description="End the study after this many results in a row that are no better than the best. 0 is off."
    )
    job_template: JobTemplate = Field(description="The job run for each trial; its env also gets the HP_ variables.")
    asha_config: AshaConfig | None = Field(None, description="Settings of the asha algorithm.")
    max_failed_trials: Int32 | None = Field(None, ge=0, description="End the study when more trials have failed.")
    max_duration_seconds: Int32 | None = Field(None, ge=1, description="End the study after this many seconds.")
    max_gpu_hours: Number | None = Field(
        None, ge=0, description="End the study after this many GPU hours in its trials."
    )
    warm_start_from: Annotated[list[str], SET] | None = Field(
        None, description="Tuners of the same namespace whose finished trials of the same parameters are reused."
    )


class IntermediateMetric(Model):
    """The objective's value at a rung."""

    step: Int32 = Field(description="Epoch or step.")
    value: Number = Field(description="Value of the objective metric.")


class Trial(Model):
    """One trial."""

    name: str = Field(description="Name of the trial, which is the name of its job.")
    job_name: str | None = Field(None, description="Name of its GryviaAIJob.")
    parameters: dict[str, str] = Field(description="Parameter values.")
    phase: TrialPhase = Field(description="Where the trial is. Stopped: ended early because others are better.")
    metric_value: Number | None = Field(None, description="Value of the objective metric.")
    intermediate_metrics: list[IntermediateMetric] | None = Field(None, description="Values at the rungs (asha).")
    start_time: Time | None = Field(None, description="When its job first ran.")
    completion_time: Time | None = Field(None, description="When its job ended.")
    message: str | None = Field(None, description="Why it failed, was stopped, or has no value.")


class GryviaAutoTunerStatus(Status):
    """The status of a GryviaAutoTuner."""

    phase: TunerPhase | None = Field(None, description="Where the study is. Succeeded and Failed are final.")
    trials: Annotated[list[Trial], keyed_by("name")] | None = Field(
        None, description="Running trials, the best and the newest; older ones are in the archive."
    )
    best_trial: Trial | None = Field(None, description="The trial with the best value so far.")
    trials_completed: Int32 | None = Field(None, description="Trials that succeeded or were stopped.")
    trials_running: Int32 | None = Field(None, description="Trials pending or running.")
    trials_failed: Int32 | None = Field(None, description="Trials that failed.")
    trials_stopped: Int32 | None = Field(None, description="Trials ended early; they are also counted as completed.")
    trials_launched: Int32 | None = Field(None, description="Trials started so far.")
    archived_trials: Int32 | None = Field(None, description="Trials in the archive (ConfigMaps <tuner>-trials-<k>).")
    warm_start_trials: Int32 | None = Field(None, description="Finished trials of other tuners that were reused.")
    gpu_hours: Number | None = Field(None, description="GPU hours used by ended trials.")
    start_time: Time | None = Field(None, description="When the study began.")
    completion_time: Time | None = Field(None, description="When the study ended.")
    message: str | None = Field(None, description="Why the phase is what it is.")


AUTO_TUNER = Kind(
    name="GryviaAutoTuner",
    plural="gryviaautotuners",
    spec=GryviaAutoTunerSpec,
    status=GryviaAutoTunerStatus,
    summary="A hyperparameter study: trials of one job template with different parameters, to find the best objective.",
    columns=(
        Column("Algorithm", ".spec.searchAlgorithm"),
        Column("MaxTrials", ".spec.maxTrials", "integer"),
        Column("Completed", ".status.trialsCompleted", "integer"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    label="tuner",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaAutoTuner
metadata:
  name: digits
spec:
  searchAlgorithm: bayesian
  objective:
    metricName: val_accuracy
    direction: maximize
    goal: 0.985
  maxTrials: 30
  parallelism: 4
  parameterSpace:
    - {name: lr, type: float, min: 0.0001, max: 0.1, scale: log}
    - {name: hidden, type: int, min: 16, max: 128, step: 16}
    - {name: activation, type: categorical, values: [relu, tanh]}
  jobTemplate:
    type: training
    gpus: 0
    image: python:3.11-slim
    command: ["python", "/opt/train.py"]
  maxFailedTrials: 5
""",
        conditions=(
            ("TrialsRunning", "True (TrialsActive) while a trial runs, False (Done) at the end."),
            ("BestTrialFound", "A trial has reported the metric."),
            ("SpecValid", "False (Invalid) with what to change."),
            ("WarmStarted", "TrialsReused or NothingToReuse."),
            ("FieldsIgnored", "True names the fields that have no effect in this combination."),
        ),
        children=(
            ("GryviaAIJob `<tuner>-trial-<n>`", "One a trial, n from 0."),
            ("ConfigMap `<tuner>-trials-<k>`", "Finished trials that no longer stand in the status."),
        ),
        labels=(
            ("tuner", "Name of the tuner, on its trials."),
            ("component", "trial, or trial-archive on a ConfigMap."),
        ),
        annotations=(("metric-<name>", "On a trial's job: value of the objective, written by training code."),),
        notes=("A trial's env gets HP_<name> for each parameter (sorted by name), TRIAL_NAME and TUNER_NAME.",),
    ),
)
