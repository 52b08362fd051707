"""The Job controller, wired: which objects it sees and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from gryvia_devcluster.controllers.actions import Action
from gryvia_devcluster.controllers.cache import Cache, Ref, controller_ref
from gryvia_devcluster.controllers.job.pods import is_tracked, release
from gryvia_devcluster.controllers.job.sync import DEFAULT_BACKOFF, sync_job
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json


def job_controllers(backoff_base: timedelta = DEFAULT_BACKOFF) -> list[Controller]:
    return [
        Controller(
            name="job-controller",
            resource="jobs.batch",
            gather=lambda cache, job: cache.controlled(job, "pods"),
            sync=partial(sync_job, backoff_base=backoff_base),
            wake=_wake_job,
        ),
        Controller(
            name="job-orphan-controller",
            resource="pods",
            gather=_owning_job,
            sync=sync_orphan,
            wake=_wake_orphans,
            cares=lambda old, new: new is not None and is_tracked(new),
        ),
    ]


def _wake_job(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "pods" and (owner := controller_ref(obj)) is not None and owner["kind"] == "Job":
        yield Ref("jobs.batch", ref.namespace, owner["name"])


def _owning_job(cache: Cache, pod: Json) -> Sequence[Json]:
    reference = controller_ref(pod)
    job = cache.owner(pod, reference) if reference is not None else None
    return [job] if job is not None else []


def _wake_orphans(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "jobs.batch" and cache.at(ref) is None:
        yield from (d for d, _ in cache.dependents(obj["metadata"]["uid"]) if d.resource == "pods")


def sync_orphan(pod: Json, jobs: Sequence[Json], now: datetime) -> list[Action]:
    """A pod whose Job is gone will never be counted, so its tracking finalizer must not hold it."""
    return [release(pod)] if is_tracked(pod) and not jobs else []
