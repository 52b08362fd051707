"""What a job has reported, out of its log, its termination message and its annotations, and what is still to be read.

Only one attempt counts: the newest of the leading pod. The condition MetricsReported says which one the status is about, and
what stands there is carried on only for that one (after a restart of the service the log is read again, but not all of
it), so no number of a failed attempt ever becomes the result of the next. A job that ended keeps its phase until the rest
of its log is read, or cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from gryvia_common.kinds.aijob import JobMetrics
from gryvia_common.kinds.conditions import find_condition
from gryvia_common.runtime.plan import Action
from gryvia_common.runtime.world import World
from gryvia_jobs.actions import READ_LOG, LogReading
from gryvia_jobs.history import thin
from gryvia_jobs.metrics import Reading, annotation_metrics, read_object, termination_metrics, whole
from gryvia_jobs.observed import Observed, Pod
from gryvia_jobs.workload import CONTAINER, Job

MOST_FAILURES = 3
SOONEST, LATEST, SILENT, SHARE = 1.0, 15.0, 60.0, 0.1
AT_ONCE, RETRY = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class Report:
    """`source`: what the metrics are of, empty when that is as it was. `unread`: the job has ended and the end of its log is
    still to come."""

    metrics: JobMetrics | None
    source: str = ""
    notes: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    unread: bool = False


def report(job: Job, found: Observed, world: World, now: datetime) -> Report:
    pod = found.lead()
    if pod is None or pod.started_at is None:
        reading = _standing(job)
        return _report(job, reading, pod)
    key = f"log/{pod.attempt}"
    observation = world.observation(key)
    log = observation.value if observation and isinstance(observation.value, LogReading) else LogReading()
    given_up = bool(observation and not log.complete and (observation.error or log.failures >= MOST_FAILURES))
    ended = bool(pod.terminated) and pod.ended
    done = ended and (log.complete or given_up)
    source = f"read from the log of pod {pod.name}, run {pod.restarts + 1}" if observation else ""
    reading = _joined(job, source, log) if observation else _standing(job)
    error = (observation.error if observation else "") or log.error
    if done and error:
        reading = replace(
            reading, notes=(*reading.notes, f"the end of the log of pod {pod.name} was not read: {error}")
        )
    action = Action(
        READ_LOG,
        key,
        {
            "pod": pod.name,
            "container": CONTAINER,
            "ended": ended,
            "patterns": job.spec.metric_patterns or {},
        },
        every=_last_read(log) if ended else interval(pod, log, now),
    )
    unread = found.verdict is not None and ended and not done
    told = _report(job, reading, pod)
    return replace(told, source=source, actions=() if done else (action,), unread=unread)


def interval(pod: Pod, log: LogReading, now: datetime) -> float:
    """Seconds between reads: a tenth of the container's age, so that a short run is followed closely and a long one cheaply,
    and one that has never reported anything more cheaply still."""
    age = (now - pod.started_at).total_seconds() if pod.started_at else 0.0
    return min(max(age * SHARE, SOONEST), LATEST if log.reading.values else SILENT)


def _last_read(log: LogReading) -> float:
    """At once after the last look, as somebody waits for the phase; with more patience when it failed."""
    return RETRY if log.failures else AT_ONCE


def _standing(job: Job) -> Reading:
    metrics = job.status.metrics
    if metrics is None:
        return Reading()
    return Reading(values=metrics.values, history=tuple(metrics.history or ()))


def _joined(job: Job, source: str, log: LogReading) -> Reading:
    """The log's reading, with what the status knew before it where that is of the same attempt."""
    noted = find_condition(job.status.conditions, "MetricsReported")
    if noted is None or noted.message != source:
        return log.reading
    standing = _standing(job)
    first = log.reading.history[0].step if log.reading.history else None
    earlier = [p for p in standing.history if first is None or (p.step is not None and p.step < first)]
    values = {**(standing.values or {}), **(log.reading.values or {})}
    return replace(log.reading, values=values, history=thin([*earlier, *log.reading.history]))


def _report(job: Job, reading: Reading, pod: Pod | None) -> Report:
    found, cut = termination_metrics(str(pod.terminated.get("message") or "")) if pod else ({}, "")
    annotated = annotation_metrics(job.annotations)
    reading = read_object(read_object(reading, found), annotated)
    notes = (*reading.notes, cut) if cut else reading.notes
    return Report(_metrics(reading, annotated.get("throughput")), notes=notes)


def _metrics(reading: Reading, throughput: str | None) -> JobMetrics | None:
    values = dict(reading.values or {})
    if not values and not throughput:
        return None
    number = values.get("throughput")
    return JobMetrics(
        gpu_utilization=values.get("gpuUtilization", values.get("gpu_utilization")),
        throughput=throughput or (f"{number:g}" if number is not None else None),
        loss=values.get("loss"),
        epoch=whole(values.get("epoch")),
        step=whole(values.get("step")),
        values=values or None,
        history=list(reading.history) or None,
    )
