"""The pass of a tuner: what its trials are by now, whether the study goes on, and what to start next.

    sync with the jobs ─► asha ─► goal and budgets ─► launch ─► archive ─► status

Crash safety rests on two orders. A trial's job is created before the status knows the trial; a pass that finds such a job adopts
it, with the parameters that stand on it. A trial is over in the status before its job is deleted, so a vanished job always
means that somebody else deleted it. Until such a job is gone its slot is taken, and no study ends before that.
"""

from __future__ import annotations

from datetime import datetime

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.objects import uid_of
from gryvia_common.runtime.plan import Apply, Delete, Plan
from gryvia_common.runtime.world import World
from gryvia_search.history import used
from gryvia_tuner import archive, budgets, events
from gryvia_tuner.budgets import Stop
from gryvia_tuner.launch import Launched, launch
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.status import status_of
from gryvia_tuner.study import Records, Study, Tools, read
from gryvia_tuner.trials import Tuner


def decide(tuner: Tuner, world: World, now: datetime, tools: Tools) -> Plan:
    if tuner.deleting or has_ended(tuner):
        return Plan()
    study = read(tuner, world, now, tools)
    blocks = archive.due(study)
    refused = _refused(world, blocks)
    stop = _stop(study, refused)
    study = study.having(_stopped(study, stop))
    launched = Launched()
    if stop is None and study.space is not None:
        launched = launch(study, study.space, tools)
        study = study.having(launched.records)
    ending = _ending(study, stop, launched)
    status = status_of(
        study,
        phase="Running" if ending is None else "Failed" if ending.failed else "Succeeded",
        message=ending.message if ending else _progress(study, stop, tools.settings),
    )
    return Plan(
        status=status,
        apply=(*launched.apply, *(() if refused else blocks)),
        delete=tuple(
            Delete(AI_JOB.resource, tuner.namespace, study.name_of(number), uid_of(job))
            for number, job in study.stopping.items()
            if number in study.before and study.before[number].abandoned
        ),
        emit=tuple(events.emitted(study, status)),
        record=tuple(events.recorded(study, status)),
        again_at=budgets.look_again(study) if ending is None else None,
    )


def has_ended(tuner: Tuner) -> bool:
    """A finished study is never looked at again. One that never began, because its spec was invalid, is: when that changes."""
    status = tuner.status
    if status.phase == "Failed" and not status.trials_launched:
        return status.observed_generation == tuner.generation
    return status.phase in ("Succeeded", "Failed")


def _stop(study: Study, refused: str) -> Stop | None:
    if study.invalid:
        return Stop(study.invalid, failed=True)
    if refused:
        return Stop(f"the archive of trials cannot be written: {refused}", failed=True)
    return next(budgets.stops(study), None)


def _stopped(study: Study, stop: Stop | None) -> Records:
    """The trials that are to be stopped, so marked: all of them, or those that asha weeds out."""
    running, why = [record.number for record in study.active], dict[int, str]()
    if stop is not None:
        why = dict.fromkeys(running, f"stopped: {stop.message}")
    elif study.rungs is not None:
        points = {number: record.rungs for number, record in study.records.items() if record.rungs}
        found = study.rungs.judged(points, running, minimize=study.minimize)
        why = {number: verdict.said(study.spec.objective.metric_name) for number, verdict in found.items()}
    at = timestamp(study.now)
    return {number: study.records[number].ended_as("Stopped", text, at) for number, text in why.items()}


def _ending(study: Study, stop: Stop | None, launched: Launched) -> Stop | None:
    """How the study ends; None while it runs."""
    if study.stopping or study.active:
        return None
    said, counts = _results(study), study.counts
    if stop is not None:
        failed = counts["Succeeded"] == 0 if stop.failed is None else stop.failed
        return Stop(stop.message if study.invalid else f"{stop.message}; {said}", failed)
    if launched.exhausted:
        said = f"Search space exhausted; {said}"
    elif used(study.records.values()) < study.spec.max_trials:
        return None
    return Stop(said, failed=counts["Succeeded"] + counts["Stopped"] == 0 and counts["Failed"] > 0)


def _results(study: Study) -> str:
    counts, best, metric = study.counts, study.best, study.spec.objective.metric_name
    said = f"{counts['Succeeded'] + counts['Stopped']} trials completed"
    if counts["Failed"]:
        said += f", {counts['Failed']} failed"
    if best is not None:
        return f"{said}, best {metric} {best.value:g} by {study.name_of(best.number)}"
    return f"{said}; no trial reported the metric {metric}"


def _progress(study: Study, stop: Stop | None, settings: TunerSettings) -> str:
    if stop is not None:
        return f"stopping the running trials: {stop.message}"
    wanted, limit = study.spec.parallelism, settings.tuner_max_parallelism
    if wanted > limit:
        return f"parallelism {wanted} is capped at {limit}, the service's setting --tuner-max-parallelism"
    return ""


def _refused(world: World, blocks: tuple[Apply, ...]) -> str:
    """Why a block of the archive was refused; empty when none was."""
    found = (world.refusal(block.resource, block.manifest["metadata"]["name"]) for block in blocks)
    return next((refusal.message for refusal in found if refusal is not None), "")
