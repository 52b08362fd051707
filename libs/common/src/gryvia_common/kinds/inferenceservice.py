"""GryviaInferenceService: a model behind an HTTP endpoint, with canary, autoscaling and scale to zero.

`backend` is text: an unknown one is served when `image` is set, and Failed by the service when it is not.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference, Scale
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import ATOMIC, Bool, Int32, Int64, Number, Time

InferencePhase = Literal["Pending", "Deploying", "Ready", "ScaledToZero", "RollingBack", "Failed"]
CanaryHealth = Literal["Pending", "Healthy", "Unhealthy", "Promoted", "RolledBack", "Unknown"]
Health = Literal["Healthy", "Unhealthy", "Unknown"]


class Autoscaling(Model):
    """More or fewer stable pods by load."""

    enabled: Bool = Field(description="Scale by load.")
    min_replicas: Int32 = Field(1, description="Lower bound. Default 1.")
    max_replicas: Int32 = Field(description="Upper bound, at least 1 and minReplicas.")
    target_gpu_utilization: Int32 | None = Field(
        None, alias="targetGPUUtilization", description="GPU utilisation to keep per pod, 1 to 100 percent."
    )
    target_requests_per_second: Int32 | None = Field(None, description="Requests a second to keep per pod.")
    target_in_flight_requests: Int32 | None = Field(
        None, ge=1, description="Requests in flight to keep per pod, as the LLM gateway counts them."
    )


class CanaryStep(Model):
    """One weight on the way up."""

    weight: Int32 = Field(ge=0, le=100, description="Percent of the requests.")
    hold_seconds: Int32 = Field(ge=0, description="Healthy seconds at this weight before the next.")


class CanaryAnalysis(Model):
    """What the gateway must measure for the canary to go on; too little traffic holds the weight."""

    max_error_rate: Number | None = Field(None, ge=0, le=1, description="Largest share of failed requests, 0 to 1.")
    max_p95_seconds: Number | None = Field(None, alias="maxP95Seconds", ge=0, description="Largest p95 latency.")
    max_ttft_seconds: Number | None = Field(
        None, alias="maxTTFTSeconds", ge=0, description="Largest p95 time to the first token."
    )
    max_inter_token_seconds: Number | None = Field(None, ge=0, description="Largest p95 time between tokens.")
    min_requests: Int32 | None = Field(None, ge=1, description="Requests needed for a verdict. Default 100.")


class Canary(Model):
    """A second version beside the stable one."""

    enabled: Bool = Field(description="Run a canary.")
    weight: Int32 = Field(description="Percent for the canary, 0 to 100.")
    model_version: str = Field(description="Registry entry or version label of the canary.")
    auto_promote: Bool = Field(False, description="Promote when healthy. Default false.")
    promote_after_seconds: Int64 = Field(0, description="Healthy seconds before promotion; 0 is at once.")
    steps: list[CanaryStep] | None = Field(None, description="Weights to walk up through, instead of weight at once.")
    analysis: CanaryAnalysis | None = Field(None, description="Gates measured by the LLM gateway.")
    bake_seconds: Int64 | None = Field(
        None, ge=0, description="Time after promotion during which a breach rolls back at once. Default 0."
    )


class HealthCheck(Model):
    """Probing, and what a failing canary leads to."""

    path: str | None = Field(None, description="Probe path. Default by setting, then by backend.")
    interval_seconds: Int32 = Field(30, description="Seconds per counted failure. Default 30.")
    failure_threshold: Int32 = Field(3, description="Failures before rollback. Default 3.")
    auto_rollback: Bool = Field(False, description="Remove a failing canary. Default false.")


class ScaleToZero(Model):
    """No pods while nobody asks."""

    enabled: Bool = Field(description="Scale down when idle.")
    idle_seconds: Int32 = Field(900, ge=60, description="Idle time before zero, at least 60. Default 900.")
    cold_start_timeout_seconds: Int32 = Field(
        300, ge=10, le=3600, description="How long the gateway holds a request for the start. Default 300."
    )


class GryviaInferenceServiceSpec(Spec):
    """The spec of a GryviaInferenceService."""

    model_ref: str = Field(description="Registry entry to serve.")
    backend: str = Field(description="Server type: triton, vllm, tensorrt-llm or torchserve; another one needs image.")
    replicas: Int32 = Field(1, description="Stable pods. Default 1.")
    gpu_count: Int32 = Field(0, description="GPUs per pod; 0 is CPU. Default 0.")
    gpu_type: str | None = Field(None, description="Preferred GPU type.")
    image: str | None = Field(None, description="Container image. Default by backend.")
    args: list[str] | None = Field(None, description="Container arguments.")
    autoscaling: Autoscaling | None = Field(None, description="Scale by load.")
    canary: Canary | None = Field(None, description="A second version beside the stable one.")
    health_check: HealthCheck | None = Field(None, description="Probing.")
    service_port: Int32 | None = Field(
        None, description="Port the server listens on. Default 8000; torchserve and unknown backends 8080."
    )
    scale_to_zero: ScaleToZero | None = Field(None, description="No pods while nobody asks.")


class CanaryVerdict(Model):
    """The newest analysis of the canary."""

    verdict: Literal["Passed", "Breached", "Inconclusive"] = Field(description="What it found.")
    at: Time = Field(description="When.")
    requests: Int64 | None = Field(None, description="Requests it is based on.")
    error_rate: Number | None = Field(None, description="Share of failed requests.")
    p95_seconds: Number | None = Field(None, alias="p95Seconds", description="p95 latency.")
    ttft_seconds: Number | None = Field(None, description="p95 time to the first token.")
    inter_token_seconds: Number | None = Field(None, description="p95 time between tokens.")


class CanaryStatus(Model):
    """The canary as it is."""

    active: Bool = Field(description="Whether a canary runs.")
    weight: Int32 | None = Field(None, description="Percent it gets now.")
    ready_replicas: Int32 | None = Field(None, description="Ready canary pods.")
    deployment_name: str | None = Field(None, description="Its Deployment.")
    health: CanaryHealth | None = Field(None, description="How it does.")
    started_at: Time | None = Field(None, description="When it started.")
    step: Int32 | None = Field(None, description="Position in canary.steps, from 0.")
    step_since: Time | None = Field(None, description="Since when it has been healthy at this weight.")
    analysis: CanaryVerdict | None = Field(None, description="The newest verdict of the gates.")


class ColdStart(Model):
    """Seconds per phase of the newest start from zero."""

    schedule: Number | None = Field(None, description="Until a node was chosen.")
    pull: Number | None = Field(None, description="Until the image was there.")
    start: Number | None = Field(None, description="Until the container ran.")
    load: Number | None = Field(None, description="Until the model was loaded.")
    first_ready: Number | None = Field(None, description="From the wake to the first ready pod, in all.")


class GryviaInferenceServiceStatus(Status):
    """The status of a GryviaInferenceService."""

    phase: InferencePhase | None = Field(None, description="Where the service is.")
    endpoint: str | None = Field(None, description="Address inside the cluster.")
    ready_replicas: Int32 | None = Field(None, description="Ready stable pods.")
    selector: str | None = Field(None, description="Label selector of the stable pods, for the scale subresource.")
    canary_status: CanaryStatus | None = Field(None, description="The canary as it is.")
    deployment_name: str | None = Field(None, description="Stable Deployment.")
    service_name: str | None = Field(None, description="Service.")
    last_health_check: Time | None = Field(None, description="Last counted check of the canary.")
    health_status: Health | None = Field(None, description="Health of the stable pods.")
    consecutive_failures: Int32 | None = Field(None, description="Failures of the canary in a row.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    scaled_to_zero_at: Time | None = Field(None, description="When it was last scaled to zero.")
    last_wake_at: Time | None = Field(None, description="When it was last woken.")
    promoted_version: str | None = Field(None, description="Version the stable pods serve, when not modelRef's own.")
    previous_version: str | None = Field(None, description="Version to go back to during the bake time.")
    bake_until: Time | None = Field(None, description="End of the bake time.")
    rolled_back_versions: Annotated[list[str], Field(max_length=20), ATOMIC] | None = Field(
        None, description="Canaries that were rolled back; they are not tried again."
    )
    cold_start: ColdStart | None = Field(None, description="Seconds per phase of the newest start.")


INFERENCE_SERVICE = Kind(
    name="GryviaInferenceService",
    plural="gryviainferenceservices",
    spec=GryviaInferenceServiceSpec,
    status=GryviaInferenceServiceStatus,
    summary="A model behind an HTTP endpoint, with canary, autoscaling and scale to zero.",
    columns=(
        Column("ModelRef", ".spec.modelRef"),
        Column("Backend", ".spec.backend"),
        Column("Replicas", ".status.readyReplicas", "integer"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    scale=Scale(".spec.replicas", ".status.readyReplicas", ".status.selector"),
    label="inference",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaInferenceService
metadata:
  name: chat
spec:
  modelRef: chat-v1
  backend: vllm
  replicas: 2
  gpuCount: 1
  scaleToZero:
    enabled: true
    idleSeconds: 1800
  canary:
    enabled: true
    weight: 50
    modelVersion: chat-v2
    autoPromote: true
    steps:
      - {weight: 5, holdSeconds: 120}
      - {weight: 50, holdSeconds: 300}
    analysis:
      maxErrorRate: 0.01
      maxTTFTSeconds: 0.8
    bakeSeconds: 600
""",
        conditions=(
            ("InferenceReady", "Stable pods are ready."),
            ("CanaryActive", "A canary runs; False after promotion or rollback, with the reason."),
            ("Healthy", "Stable and canary do well."),
            ("AutoscalingValid", "False: InvalidRange, InvalidMetrics, NameCollision."),
            ("AutoscalingReady", "Mirrors the HPA's ScalingActive; Unknown when stale."),
            ("GatewayRouting", "The HTTPRoute is accepted and its references resolved."),
            (
                "CanaryAnalysisReady",
                "SLOPassed, SLOBreached, WarmingUp, InsufficientTraffic, NotConfigured or TelemetryUnavailable.",
            ),
            ("ScaleToZero", "True (Idle) at zero; False (Unsupported) with a canary."),
        ),
        children=(
            ("Deployment and Service `<name>-inference`", "The stable pods, and the address of both tracks."),
            ("HorizontalPodAutoscaler `<name>-inference-hpa`", "With autoscaling."),
            ("Deployment `<name>-canary`", "With a canary."),
            ("HTTPRoute `<name>-route`, Services `<name>-route-stable` and `-canary`", "With gateway routing."),
        ),
        labels=(
            ("inference", "Name of the service."),
            ("component", "inference-server."),
            ("track", "stable or canary."),
        ),
        annotations=(
            ("last-request", "When the gateway last had a request for it."),
            ("wake-requested", "Wakes it from zero; removed when done."),
            ("gateway-parent, gateway-section, gateway-hostname", "Where its HTTPRoute is attached."),
            ("canary-max-error-rate, canary-max-p95-seconds, canary-min-requests", "Gates by Prometheus."),
            ("llm-model, llm-served-model, llm-shared", "How the LLM gateway offers it."),
            ("llm-price-input-per-1m, llm-price-output-per-1m", "Prices of its tokens."),
        ),
    ),
)
