"""GryviaLiveExperiment: running jobs compared side by side, the weak ones stopped early."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, Bool, Integer, Number, Time


class ExperimentJob(Model):
    """One contestant."""

    name: str = Field(description="Name on the leaderboard.")
    job_ref: str = Field(description="GryviaAIJob in the namespace.")


class SecondaryMetric(Model):
    """A metric that also counts."""

    name: str = Field(description="Metric.")
    weight: Number = Field(description="Weight in the score, 0 to 1.")


class MetricSource(Model):
    """Where metrics come from."""

    type: Literal["log-pattern", "prometheus"] = Field(description="Source kind.")
    patterns: dict[str, str] | None = Field(
        None, description="Metric to a regular expression with one group. Default built in."
    )


class Comparison(Model):
    """How the jobs are ranked."""

    primary_metric: str = Field(description="Metric they are ranked by.")
    direction: Literal["minimize", "maximize"] = Field(description="Which way is better.")
    secondary_metrics: list[SecondaryMetric] | None = Field(None, description="Metrics that also count.")
    metric_source: MetricSource | None = Field(None, description="Where metrics come from. Default the job's status.")


class ComparisonPoint(Model):
    """Where jobs are compared."""

    type: Literal["epoch", "step"] = Field(description="Unit.")
    values: list[Integer] = Field(description="Epochs or steps.")


class EarlyTermination(Model):
    """Stopping weak jobs."""

    enabled: Bool = Field(description="Stop weak jobs.")
    method: Literal["bayesian", "median", "percentile"] | None = Field(None, description="Rule.")
    min_run_fraction: Number = Field(0.25, description="Points needed, as a share of the longest run. Default 0.25.")
    confidence_level: Number = Field(0.95, description="Factor of the threshold, 0 to 1. Default 0.95.")
    grace_epochs: Integer | None = Field(None, description="Epochs during which nothing is stopped.")


class AnomalyDetection(Model):
    """What is flagged."""

    loss_plateau_detection: Bool | None = Field(None, description="Flag plateaus.")
    loss_divergence_detection: Bool | None = Field(None, description="Flag rising values.")
    gradient_explosion_detection: Bool | None = Field(None, description="Flag NaN and Inf.")


class Intervention(Model):
    """What is done about anomalies."""

    enabled: Bool = Field(description="Act on anomalies.")
    actions: list[Literal["terminate", "notify", "reduce-lr", "checkpoint"]] | None = Field(
        None, description="What to do."
    )


class Strategy(Model):
    """What is done while the jobs run."""

    comparison_points: list[ComparisonPoint] | None = Field(None, description="Where jobs are compared.")
    early_termination: EarlyTermination | None = Field(None, description="Stopping weak jobs.")
    anomaly_detection: AnomalyDetection | None = Field(None, description="What is flagged.")
    intervention: Intervention | None = Field(None, description="What is done about anomalies.")


class Notifications(Model):
    """Who is told."""

    real_time_leaderboard: Bool | None = Field(None, description="Send the leaderboard.")
    on_new_leader: Bool | None = Field(None, description="Tell of a new leader.")
    on_termination: Bool | None = Field(None, description="Tell of a stopped job.")
    channel: str | None = Field(None, description="slack://... or email://...")


class GryviaLiveExperimentSpec(Spec):
    """The spec of a GryviaLiveExperiment."""

    description: str | None = Field(None, description="Free text.")
    jobs: list[ExperimentJob] = Field(description="The contestants.")
    comparison: Comparison = Field(description="How they are ranked.")
    strategy: Strategy | None = Field(None, description="What is done while they run.")
    notifications: Notifications | None = Field(None, description="Who is told.")


class Rank(Model):
    """One line of the leaderboard."""

    rank: Integer = Field(description="Place, from 1.")
    job: str = Field(description="Name of the contestant.")
    primary_metric_value: Number = Field(description="Its primary metric.")
    status: Literal["Running", "Completed", "Failed", "TerminatedEarly"] = Field(description="Where its job is.")
    reason: str | None = Field(None, description="Why it was stopped.")


class GryviaLiveExperimentStatus(Status):
    """The status of a GryviaLiveExperiment."""

    phase: Literal["Pending", "Running", "Completed", "Failed"] | None = Field(None, description="Where it is.")
    start_time: Time | None = Field(None, description="When the first job ran.")
    completion_time: Time | None = Field(None, description="When the last job ended.")
    leaderboard: Annotated[list[Rank], ATOMIC] | None = Field(None, description="Best first.")
    gpu_hours_saved: Number | None = Field(None, description="Estimate of the GPU hours saved.")
    cost_saved: Number | None = Field(None, description="Estimate of the cost saved.")
    anomalies_detected: Integer | None = Field(None, description="Anomalies so far, each counted once.")
    message: str | None = Field(None, description="Why the phase is what it is.")


LIVE_EXPERIMENT = Kind(
    name="GryviaLiveExperiment",
    plural="gryvialiveexperiments",
    spec=GryviaLiveExperimentSpec,
    status=GryviaLiveExperimentStatus,
    summary="Running jobs compared side by side, the weak ones stopped early.",
    columns=(
        Column("Phase", ".status.phase"),
        Column("Leader", ".status.leaderboard[0].job"),
        Column("GPUHoursSaved", ".status.gpuHoursSaved", "number"),
        Column("CostSaved", ".status.costSaved", "number"),
        AGE,
    ),
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaLiveExperiment
metadata:
  name: optimizers
spec:
  jobs:
    - {name: adam, jobRef: resnet-adam}
    - {name: sgd, jobRef: resnet-sgd}
  comparison:
    primaryMetric: loss
    direction: minimize
  strategy:
    earlyTermination:
      enabled: true
      method: median
""",
        conditions=(
            ("MetricsRead", "Which jobs report the metric."),
            ("FieldsIgnored", "Fields without effect are named here."),
        ),
    ),
)
