"""A trial and its job: the manifest that starts it, and what the job's state says about it.

The job is the memory of what was decided: its parameters stand in an annotation (and in its environment), so that a job that
was created just before a crash is adopted with them. Every end of a job ends its trial; "running for ever" does not exist.
The result is read when the job has succeeded, from the first place that has one: the annotation, status.metrics.values, for
`loss` status.metrics.loss. Only a plain finite decimal is a result.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER, GryviaAutoTunerSpec, GryviaAutoTunerStatus
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.trials import LOST, TUNER_LABEL, TrialRecord, trial_name, tuner_label
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import Json, annotations_of, is_deleting
from gryvia_common.kube.resources import GROUP
from gryvia_common.numbers import parse_decimal
from gryvia_common.runtime.world import Object, Refusal

PARAMETERS = f"{GROUP}/trial-parameters"
METRIC = f"{GROUP}/metric-"
LONGEST_MESSAGE = 240
REFUSED = "the job was refused"
_NOT_IN_A_KEY = re.compile(r"[^A-Za-z0-9_.-]")

Tuner = Object[GryviaAutoTunerSpec, GryviaAutoTunerStatus]


def manifest(tuner: Tuner, number: int, parameters: Mapping[str, str]) -> Json:
    """The GryviaAIJob of a trial: the template with the trial's variables behind its own."""
    name = trial_name(tuner.name, number)
    meta = owned_metadata(
        tuner.raw,
        AUTO_TUNER.resource,
        name,
        {TUNER_LABEL: tuner_label(tuner.name), f"{GROUP}/component": "trial"},
    )
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
    return TrialRecord(number=number, parameters=_parameters(job), phase="Pending")


def synced(record: TrialRecord, job: Json | None, refusal: Refusal | None, metric: str, now: datetime) -> TrialRecord:
    """The trial as its job has it now."""
    if record.phase == "Succeeded":
        return _read_again(record, job, metric)
    if not record.active:
        return record
    if job is None:
        why = f"{REFUSED}: {refusal.message}" if refusal else "the job is gone: somebody deleted it"
        return failed(record, why, now)
    status = job.get("status") or {}
    phase = status.get("phase") or ""
    record = replace(record, started=record.started or status.get("startTime") or "")
    if phase == "Running":
        return replace(record, phase="Running", started=record.started or timestamp(now))
    ended = replace(record, ended=status.get("completionTime") or timestamp(now))
    message = str(status.get("message") or "")
    if phase == "Succeeded":
        value, why = result(job, metric)
        return replace(ended, phase="Succeeded", value=value, message=shortened(why))
    if phase == "Preempted":
        return failed(ended, f"{LOST}: the job was preempted{_after(message)}", now)
    if phase in ("Failed", "Rejected", "Cancelled"):
        return failed(
            ended,
            f"the job was {phase.lower()}{_after(message)}"
            if phase != "Failed"
            else f"the job failed{_after(message)}",
            now,
        )
    return record


def failed(record: TrialRecord, why: str, now: datetime) -> TrialRecord:
    return replace(record, phase="Failed", ended=record.ended or timestamp(now), message=shortened(why))


def stopped(record: TrialRecord, why: str, now: datetime) -> TrialRecord:
    return replace(record, phase="Stopped", ended=timestamp(now), message=shortened(why))


def alive(job: Json | None) -> bool:
    """Whether the job has pods or may get some; a preempted one may run again."""
    if job is None or is_deleting(job):
        return False
    return (job.get("status") or {}).get("phase") not in ("Succeeded", "Failed", "Rejected", "Cancelled")


def result(job: Json, metric: str) -> tuple[float | None, str]:
    """The value of the objective metric, or why there is none."""
    key = METRIC + _NOT_IN_A_KEY.sub("_", metric)
    text = annotations_of(job).get(key)
    if text is not None:
        value = parse_decimal(text)
        return (
            value,
            "" if value is not None else f'annotation {key}: "{text[:40]}" is not a plain finite decimal number',
        )
    metrics = (job.get("status") or {}).get("metrics") or {}
    found = (metrics.get("values") or {}).get(metric, metrics.get("loss") if metric == "loss" else None)
    if found is None:
        said = str((job.get("status") or {}).get("message") or "")
        return None, f"the job did not report the metric {metric}{_after(said)}"
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        return None, f'status.metrics of the job: "{found}" is not a finite number for {metric}'
    return float(found), ""


def shortened(text: str) -> str:
    """Messages stay in the history of 20,000 trials."""
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 1] + "…"


def _read_again(record: TrialRecord, job: Json | None, metric: str) -> TrialRecord:
    """A late metric still counts while the study runs."""
    if record.value is not None or job is None:
        return record
    value, why = result(job, metric)
    return replace(record, value=value, message=shortened(why))


def _after(message: str) -> str:
    return f": {message}" if message else ""


def _parameters(job: Json) -> dict[str, str]:
    try:
        found = json.loads(annotations_of(job).get(PARAMETERS) or "")
        return {str(key): str(value) for key, value in found.items()}
    except (ValueError, AttributeError):
        env = (job.get("spec") or {}).get("env") or ()
        return {
            variable["name"].removeprefix("HP_"): str(variable.get("value", ""))
            for variable in env
            if str(variable.get("name", "")).startswith("HP_")
        }
