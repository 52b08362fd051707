"""A trial and its job: the manifest that starts it, and what the job's state says about it.

The job is the memory of what was decided: its parameters stand in an annotation (and in its environment), so that a job that
was created just before a crash is adopted with them. Every end of a job ends its trial; "running for ever" does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER, GryviaAutoTunerSpec, GryviaAutoTunerStatus
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.reported import metric_of
from gryvia_common.kinds.trials import LOST, TUNER_LABEL, TrialRecord, trial_name, tuner_label
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import Json, annotations_of, is_deleting
from gryvia_common.kube.resources import GROUP
from gryvia_common.runtime.world import Object, Refusal

PARAMETERS = f"{GROUP}/trial-parameters"
REFUSED = "the job was refused"
_FAILURES = {
    "Failed": "the job failed",
    "Rejected": "the job was rejected",
    "Cancelled": "the job was cancelled",
    "Preempted": f"{LOST}: the job was preempted",
}

Tuner = Object[GryviaAutoTunerSpec, GryviaAutoTunerStatus]


def child_metadata(tuner: Tuner, name: str, component: str) -> Json:
    labels = {TUNER_LABEL: tuner_label(tuner.name), f"{GROUP}/component": component}
    return owned_metadata(tuner.raw, AUTO_TUNER.resource, name, labels)


def manifest(tuner: Tuner, number: int, parameters: Mapping[str, str]) -> Json:
    """The GryviaAIJob of a trial: the template with the trial's variables behind its own."""
    name = trial_name(tuner.name, number)
    meta = child_metadata(tuner, name, "trial")
    meta["annotations"][PARAMETERS] = json.dumps(dict(parameters), separators=(",", ":"))
    template: Json = tuner.raw["spec"]["jobTemplate"]
    own = {f"HP_{key}": value for key, value in sorted(parameters.items())}
    own |= {"TRIAL_NAME": name, "TUNER_NAME": tuner.name}
    env = [variable for variable in template.get("env") or () if variable.get("name") not in own]
    env += [{"name": key, "value": value} for key, value in own.items()]
    return {
        "apiVersion": AI_JOB.resource.api_version,
        "kind": AI_JOB.name,
        "metadata": meta,
        "spec": {"type": "training", "gpus": 0, **template, "env": env},
    }


def adopted(number: int, job: Json) -> TrialRecord:
    """The trial of a job that the status does not know (a crash came between the two)."""
    try:
        found = json.loads(annotations_of(job).get(PARAMETERS) or "")
        parameters = {str(key): str(value) for key, value in found.items()}
    except (ValueError, AttributeError):
        env = (job.get("spec") or {}).get("env") or ()
        named = {str(variable.get("name", "")): str(variable.get("value", "")) for variable in env}
        parameters = {name.removeprefix("HP_"): value for name, value in named.items() if name.startswith("HP_")}
    return TrialRecord(number=number, parameters=parameters, phase="Pending")


def synced(record: TrialRecord, job: Json | None, refusal: Refusal | None, metric: str, now: datetime) -> TrialRecord:
    """A trial that runs, or has succeeded without a value (a late one counts while the study runs), as its job has it now."""
    at = timestamp(now)
    if record.phase == "Succeeded":
        return record if job is None else _succeeded(record, job, metric, at)
    if job is None:
        why = f"{REFUSED}: {refusal.message}" if refusal else "the job is gone: somebody deleted it"
        return record.ended_as("Failed", why, at)
    status = job.get("status") or {}
    phase, said = status.get("phase") or "", str(status.get("message") or "")
    record = replace(record, started=record.started or status.get("startTime") or "")
    at = status.get("completionTime") or at
    if phase == "Running":
        return replace(record, phase="Running", started=record.started or timestamp(now))
    if phase == "Succeeded":
        return _succeeded(record, job, metric, at)
    if phase in _FAILURES:
        return record.ended_as("Failed", f"{_FAILURES[phase]}{': ' if said else ''}{said}", at)
    return record


def _succeeded(record: TrialRecord, job: Json, metric: str, at: str) -> TrialRecord:
    value, why = metric_of(job, metric)
    return replace(record, value=value).ended_as("Succeeded", why, at)


def alive(job: Json) -> bool:
    """Whether the job has pods or may get some; a preempted one may run again."""
    phase = (job.get("status") or {}).get("phase")
    return not is_deleting(job) and phase not in ("Succeeded", "Failed", "Rejected", "Cancelled")
