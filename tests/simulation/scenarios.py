"""The lives that the campaign disturbs: small, but each with an ending of its own. Every ending is one that no delay can
change: what decides a study is what its trials say, never who is faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from memory_cluster import MemoryCluster
from node import Course, Courses
from simulated import manifest

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.service import Service
from gryvia_jobs.controller import controller as jobs_controller
from gryvia_jobs.settings import JobsSettings
from gryvia_registry.controller import controller as registry_controller
from gryvia_registry.settings import RegistrySettings
from gryvia_tuner.controller import controller as tuner_controller
from gryvia_tuner.settings import TunerSettings
from gryvia_workflow.controller import controller as workflow_controller
from gryvia_workflow.settings import WorkflowSettings

Move = tuple[float, Callable[[MemoryCluster], object]]
JOBS, TUNER, WORKFLOWS, REGISTRY = JobsSettings(), TunerSettings(), WorkflowSettings(), RegistrySettings()
SERVICES: Mapping[str, Callable[[], Service]] = {
    "jobs": lambda: Service("jobs", (jobs_controller(JOBS),)),
    "tuner": lambda: Service("tuner", (tuner_controller(TUNER),)),
    "workflow": lambda: Service("workflow", (workflow_controller(WORKFLOWS),)),
    "registry": lambda: Service("registry", (registry_controller(REGISTRY),)),
}
"""Each life of a replica begins without a memory; reading the settings would take a third of it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """`until`: virtual seconds in which everything has ended, whatever the fault. `strict` False: how far it comes
    before a person ends it depends on the fault; only what is left is compared."""

    name: str
    moves: Sequence[Move]
    courses: Courses
    services: Sequence[str] = ("jobs", "tuner")
    replicas: int = 1
    until: float = 240.0
    strict: bool = True


def job_spec(**more: object) -> Json:
    return {"type": "training", "gpus": 0, "image": "python:3.11-slim", **more}


def create(kind: object, name: str, spec: Json, at: float = 0.1) -> Move:
    resource = kind.resource  # type: ignore[attr-defined]
    return at, lambda cluster: cluster.create(resource, manifest(kind, name, spec))


def tuner_spec(**more: object) -> Json:
    return {
        "searchAlgorithm": "random",
        "objective": {"metricName": "score", "direction": "maximize"},
        "maxTrials": 3,
        "parallelism": 2,
        "parameterSpace": [{"name": "x", "type": "float", "min": 0, "max": 1}],
        "jobTemplate": job_spec(),
        **more,
    }


def report(step: int, score: float) -> str:
    return f'gryvia-report {{"step": {step}, "score": {score}}}'


def trial(job: str) -> int:
    return int(job.rpartition("-")[2])


def says(score: Callable[[int], float], seconds: Callable[[int], float | None] = lambda n: 3.0 + n) -> Courses:
    """Each trial reports half of its score after a second, and all of it with its last breath."""

    def course(job: str, index: int, attempt: int) -> Course:
        number = trial(job)
        length = seconds(number)
        return Course(length, lines=[(1.0, report(1, score(number) / 2)), (length or 1.0, report(2, score(number)))])

    return course


def annotate(name: str, at: float, **annotations: str) -> Move:
    named = {f"gryvia.io/{key}": value for key, value in annotations.items()}
    return at, lambda c: c.change(AI_JOB.resource, "team-a", name, {"metadata": {"annotations": named}})


def asha_course(job: str, index: int, attempt: int) -> Course:
    """Trial 0 is good and ends; trial 1 is bad at the first rung and would hang there for ever."""
    number = trial(job)
    lines = [(0.5 * step, report(step, 1.0 - number + step * 0.001)) for step in range(1, 2 if number else 10)]
    return Course(None if number == 1 else 6.0, lines=lines)


def archived(count: int) -> Scenario:
    """Enough trials with long values for blocks of the archive to be written."""
    space = [{"name": "x", "type": "categorical", "values": [f"{n:03}" + "v" * 30_000 for n in range(count)]}]
    spec = tuner_spec(maxTrials=count, parallelism=4, searchAlgorithm="grid", parameterSpace=space)
    return Scenario(
        "archive",
        [create(AUTO_TUNER, "study", spec)],
        says(lambda n: n / 10, lambda n: 2.0),
    )


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "job",
        [create(AI_JOB, "train", job_spec(storage="fast"))],
        lambda job, index, attempt: Course(5.3, lines=[(1.0, report(1, 0.5)), (5.3, report(2, 0.7))]),
        ("jobs",),
    ),
    Scenario(
        "distributed",
        [create(AI_JOB, "train", job_spec(retryLimit=2, distributed={"enabled": True, "nodes": 2}))],
        lambda job, index, attempt: Course(2.0 + index, 1 if (index, attempt) == (1, 0) else 0),
        ("jobs",),
    ),
    Scenario(
        "failing",
        [create(AI_JOB, "train", job_spec(retryLimit=1))],
        lambda job, index, attempt: Course(2.0, 3, lines=[(1.0, report(1, 0.1 + attempt))]),
        ("jobs",),
    ),
    Scenario(
        "cancelled",
        [create(AI_JOB, "train", job_spec(storage="fast")), annotate("train", 80.0, cancel="true")],
        lambda job, index, attempt: Course(None),
        ("jobs",),
    ),
    Scenario(
        "edited",
        [
            create(AI_JOB, "train", job_spec(suspend=True)),
            (60.0, lambda c: c.change(AI_JOB.resource, "team-a", "train", {"spec": {"suspend": False}})),
        ],
        lambda job, index, attempt: Course(3.0),
        ("jobs",),
    ),
    Scenario(
        "study",
        [create(AUTO_TUNER, "study", tuner_spec())],
        says(lambda n: n / 10),
    ),
    Scenario(
        "goal",
        [
            create(
                AUTO_TUNER, "study", tuner_spec(objective={"metricName": "score", "direction": "maximize", "goal": 2})
            )
        ],
        says(float, lambda n: (3.0, 1000.0, 40.0)[n]),
    ),
    Scenario(
        "asha",
        [
            create(
                AUTO_TUNER,
                "study",
                tuner_spec(
                    maxTrials=2,
                    searchAlgorithm="asha",
                    ashaConfig={"minResource": 1, "maxEpochs": 9, "reductionFactor": 3},
                ),
            )
        ],
        asha_course,
    ),
    Scenario(
        "deleted",
        [
            create(AUTO_TUNER, "study", tuner_spec()),
            (4.0, lambda c: c.delete(AUTO_TUNER.resource, "team-a", "study")),
        ],
        says(lambda n: n / 10, lambda n: 60.0),
        strict=False,
    ),
    Scenario(
        "failures",
        [create(AUTO_TUNER, "study", tuner_spec(maxTrials=4))],
        lambda job, index, attempt: Course(3.0, 1 if trial(job) == 1 else 0, lines=[(3.0, report(1, trial(job) / 10))]),
    ),
    archived(9),
    Scenario(
        "two-masters",
        [create(AUTO_TUNER, "study", tuner_spec())],
        says(lambda n: n / 10),
        replicas=2,
    ),
)
CHILDREN = (
    AI_JOB.plural,
    CONFIG_MAPS.plural,
    MODEL_REGISTRY.plural,
    "jobs",
    "pods",
    "services",
    "persistentvolumeclaims",
    "statefulsets",
)
