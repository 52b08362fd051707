"""What a job has reported, out of its log, its termination message and its annotations, and what is still to be read.

Only one attempt counts: the newest of the leading pod. The condition MetricsReported says which one the status is about, and
what stands there is carried on only for that one (after a restart of the service the log is read again, but not all of it), so no
number of a failed attempt ever becomes the result of the next. When an attempt has ended, the status stays as it is until the rest
of its log is read, or cannot be read; for a while also when a Job has been seen to end and its pods have not, from a note in the
status on when that end is seen long after it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from gryvia_common.kinds.aijob import JobMetrics
from gryvia_common.kinds.conditions import find_condition, parse_timestamp
from gryvia_common.kube.pods import result
from gryvia_common.kube.workloads import Workload
from gryvia_common.progress.log import LogProgress, follow_log
from gryvia_common.progress.reports import Reading, annotated, continued, meant_as_numbers, read_values, whole
from gryvia_common.runtime.plan import Action
from gryvia_common.runtime.world import World
from gryvia_jobs.workload import Job

PATIENCE, LAG = timedelta(seconds=60), timedelta(minutes=10)
"""How long a job that ended waits for pods that its Job counts and nobody sees: somebody may have deleted them. The longer one
where such a pod was seen to live: nobody has seen it go."""


@dataclass(frozen=True, slots=True)
class Report:
    """`source`: what the metrics are of, empty when that is as it was. `unread`: the attempt has ended and the end of
    its log is still to come; `again_at`: when that is given up, if nothing comes; `late`: the waiting has to be noted first."""

    metrics: JobMetrics | None
    source: str
    notes: tuple[str, ...]
    actions: tuple[Action, ...]
    unread: bool
    again_at: datetime | None = None
    late: bool = False


def report(job: Job, found: Workload, world: World, now: datetime) -> Report:
    verdict = found.verdict
    if verdict and verdict.succeeded and found.unseen:
        noted = find_condition(job.status.conditions, "MetricsValid")
        awaited = noted.last_transition_time if noted and noted.status == "Unknown" else ""
        patience = PATIENCE if all(pod.ended for pod in found.pods) else LAG
        last = parse_timestamp(awaited or verdict.at) + patience
        if now < last or not awaited:
            return Report(job.status.metrics, "", (), (), unread=True, again_at=last, late=now >= last)
    pod = found.lead
    log = follow_log(world, pod, job.spec.metric_patterns or {}, now) if pod else LogProgress()
    if log.action and log.reading is None:
        # Nobody has looked at the log yet: what was said of this or an earlier attempt stands for another moment.
        noted = find_condition(job.status.conditions, "MetricsValid")
        stands = (noted.message,) if noted and noted.status == "False" else ()
        return Report(job.status.metrics, "", stands, (log.action,), log.unread)
    ended, cut = result(pod.termination_message if pod else "")
    told = annotated(job.annotations)
    reading = read_values(read_values(_read(job, log), meant_as_numbers(ended)), told)
    unread = f"the end of the log of pod {pod.name} was not read: {log.error}" if pod and log.error else ""
    notes = (*reading.notes, *(note for note in (unread, cut) if note))
    actions = (log.action,) if log.action else ()
    return Report(_metrics(reading, told.get("throughput")), log.source, notes, actions, log.unread)


def _read(job: Job, log: LogProgress) -> Reading:
    """The log's reading, with what the status knew before it where that is of the same attempt."""
    metrics, noted = job.status.metrics, find_condition(job.status.conditions, "MetricsReported")
    standing = Reading(values=metrics.values or {}, history=tuple(metrics.history or ())) if metrics else Reading()
    if log.reading is None:
        return standing
    return continued(standing, log.reading) if noted and noted.message == log.source else log.reading


def _metrics(reading: Reading, throughput: str | None) -> JobMetrics | None:
    values = dict(reading.values)
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
