"""The pass of a tuner: what its trials are by now, whether the study goes on, and what to start next.

    sync with the jobs ─► asha ─► goal and budgets ─► launch ─► archive ─► status

Crash safety rests on two orders. A trial's job is created before the status knows the trial; a pass that finds such a job adopts
it, with the parameters that stand on it. A trial is over in the status before its job is deleted, so a vanished job always
means that somebody else deleted it. Until such a job is gone its slot is taken, and no study ends before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gryvia_common.errors import Terminal
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.trials import TrialRecord, to_record, trial_name, trial_number
from gryvia_common.kube.objects import Json, key_of, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.plan import Apply, Delete, Plan
from gryvia_common.runtime.world import World
from gryvia_search.search import Search
from gryvia_search.space import Space
from gryvia_tuner import archive, budgets, events, rungs, trials, validation, warmstart
from gryvia_tuner.budgets import Stop
from gryvia_tuner.launch import Launched, launch, used
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.status import status_of
from gryvia_tuner.trials import Tuner

Records = Mapping[int, TrialRecord]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a pass uses besides its inputs: the limits, and bounded caches of pure functions."""

    settings: TunerSettings
    search: Search
    read_block: archive.ReadBlock


@dataclass(frozen=True, slots=True)
class Study:
    """A pass's view. `before`: the trials as the status has them; `recent`: these and the adopted ones as they are now;
    `archived`: all in the archive. `space` None: the spec is `invalid`."""

    tuner: Tuner
    space: Space | None
    invalid: str
    jobs: Mapping[str, Json]
    archived: Records
    before: Records
    recent: Records
    warm: warmstart.Warm

    @property
    def records(self) -> Records:
        return {**self.archived, **self.recent}

    def alive(self, number: int) -> bool:
        return trials.alive(self.jobs.get(trial_name(self.tuner.name, number)))


def decide(tuner: Tuner, world: World, now: datetime, tools: Tools) -> Plan:
    if tuner.deleting or has_ended(tuner):
        return Plan()
    study = _read(tuner, world, now, tools)
    started = parse_timestamp(tuner.status.start_time) if tuner.status.start_time else now
    sizes = archive.sizes(study.space) if study.space else archive.LARGEST
    blocks = archive.due(tuner, study.recent, study.archived, sizes)
    stop = _stop(study, world, blocks, started, now)
    study = replace(study, recent=_stopped(study, stop, now))
    stopping = {n for n, record in study.recent.items() if _is_over(record) and study.alive(n)}
    launched = Launched()
    if stop is None and study.space is not None:
        launched = launch(
            tuner,
            world,
            study.space,
            study.records,
            study.warm.records,
            len(stopping),
            tools.search,
            tools.settings,
            now,
        )
        study = replace(study, recent={**study.recent, **launched.records})
    ending = _ending(study, stop, launched, bool(stopping))
    records = study.records
    best = budgets.best_of(records.values(), tuner.spec.objective.direction)
    status = status_of(
        tuner,
        records.values(),
        archive.window(study.recent, study.archived, best, sizes),
        best,
        phase="Running" if ending is None else "Failed" if ending.failed else "Succeeded",
        message=ending.message if ending else _progress(study, stop, tools.settings),
        archived=len(study.archived),
        warm=study.warm,
        notes=validation.ignored(tuner.spec),
        invalid=study.invalid,
        now=now,
    )
    return Plan(
        status=status,
        apply=(*launched.apply, *(() if _refused(world, blocks) else blocks)),
        delete=tuple(
            _delete(study, number)
            for number in sorted(stopping)
            if number in study.before and _is_over(study.before[number])
        ),
        emit=events.emitted(tuner, study.before, study.recent, best, status),
        record=events.recorded(tuner, study.before, study.recent, status),
        again_at=budgets.look_again(tuner.spec, records.values(), started, now) if ending is None else None,
    )


def has_ended(tuner: Tuner) -> bool:
    """A finished study is never looked at again. One that never began, because its spec was invalid, is: when that changes."""
    status = tuner.status
    if status.phase == "Failed" and not status.trials_launched:
        return status.observed_generation == tuner.generation
    return status.phase in ("Succeeded", "Failed")


def _read(tuner: Tuner, world: World, now: datetime, tools: Tools) -> Study:
    invalid, space = "", None
    try:
        space = validation.check(tuner.spec, tools.settings)
    except Terminal as error:
        invalid = str(error)
    jobs = {key_of(job).name: job for job in world.children(AI_JOB.resource)}
    archived = archive.read(world.children(CONFIG_MAPS), tuner.name, tools.read_block)
    found = (to_record(trial) for trial in tuner.status.trials or ())
    before = {record.number: record for record in found if record is not None}
    unknown = {
        number: trials.adopted(number, job)
        for name, job in jobs.items()
        if (number := trial_number(name)) is not None and number not in before and number not in archived
    }
    recent = {
        number: record if number in archived else _synced(tuner, world, jobs, record, now)
        for number, record in sorted({**before, **unknown}.items())
    }
    warm = warmstart.reused(tuner, world, space, tools.read_block) if space else warmstart.Warm()
    return Study(tuner, space, invalid, jobs, archived, before, recent, warm)


def _synced(tuner: Tuner, world: World, jobs: Mapping[str, Json], record: TrialRecord, now: datetime) -> TrialRecord:
    name = trial_name(tuner.name, record.number)
    job, config = jobs.get(name), tuner.spec.asha_config
    objective = tuner.spec.objective
    if config is not None and tuner.spec.search_algorithm == "asha" and job is not None and record.active:
        record = rungs.observed(record, job, objective.metric_name, rungs.rungs_of(config))
    return trials.synced(record, job, world.refusal(AI_JOB.resource, name), objective.metric_name, now)


def _stop(study: Study, world: World, blocks: tuple[Apply, ...], started: datetime, now: datetime) -> Stop | None:
    if study.invalid:
        return Stop(study.invalid, failed=True)
    refused = _refused(world, blocks)
    if refused:
        return Stop(f"the archive of trials cannot be written: {refused}", failed=True)
    records = study.records.values()
    best = budgets.best_of(records, study.tuner.spec.objective.direction)
    return budgets.stop_of(study.tuner.spec, records, best, started, now)


def _stopped(study: Study, stop: Stop | None, now: datetime) -> Records:
    """With the trials marked that are to be stopped: all of them, or those that asha weeds out."""
    spec = study.tuner.spec
    if stop is not None:
        why = {number: f"stopped: {stop.message}" for number, record in study.recent.items() if record.active}
    elif spec.search_algorithm == "asha" and spec.asha_config is not None:
        why = rungs.judged(study.records.values(), spec.asha_config, spec.objective)
    else:
        return study.recent
    marked = {number: trials.stopped(study.recent[number], text, now) for number, text in why.items()}
    return {**study.recent, **marked}


def _ending(study: Study, stop: Stop | None, launched: Launched, stopping: bool) -> Stop | None:
    """How the study ends; None while it runs."""
    records = study.records.values()
    if stopping or any(record.active for record in records):
        return None
    completed = sum(record.phase == "Succeeded" for record in records)
    said = _results(study)
    if stop is not None:
        failed = completed == 0 if stop.failed is None else stop.failed
        return Stop(stop.message if study.invalid else f"{stop.message}; {said}", failed)
    if launched.exhausted:
        said = f"Search space exhausted; {said}"
    elif used(records) < study.tuner.spec.max_trials:
        return None
    completed += sum(record.phase == "Stopped" for record in records)
    return Stop(said, failed=completed == 0 and any(record.phase == "Failed" for record in records))


def _results(study: Study) -> str:
    records = study.records.values()
    objective = study.tuner.spec.objective
    best = budgets.best_of(records, objective.direction)
    said = f"{sum(r.phase in ('Succeeded', 'Stopped') for r in records)} trials completed"
    failed = sum(record.phase == "Failed" for record in records)
    if failed:
        said += f", {failed} failed"
    if best is not None:
        return f"{said}, best {objective.metric_name} {best.value:g} by {trial_name(study.tuner.name, best.number)}"
    return f"{said}; no trial reported the metric {objective.metric_name}"


def _progress(study: Study, stop: Stop | None, settings: TunerSettings) -> str:
    if stop is not None:
        return f"stopping the running trials: {stop.message}"
    wanted, limit = study.tuner.spec.parallelism, settings.tuner_max_parallelism
    if wanted > limit:
        return f"parallelism {wanted} is capped at {limit}, the service's setting --tuner-max-parallelism"
    return ""


def _refused(world: World, blocks: tuple[Apply, ...]) -> str:
    """Why a block of the archive was refused; empty when none was."""
    for block in blocks:
        refusal = world.refusal(block.resource, block.manifest["metadata"]["name"])
        if refusal is not None:
            return refusal.message
    return ""


def _is_over(record: TrialRecord) -> bool:
    """Whether its job must not run on: stopped by us, or lost and run again as another trial."""
    return record.phase == "Stopped" or record.lost


def _delete(study: Study, number: int) -> Delete:
    name = trial_name(study.tuner.name, number)
    return Delete(AI_JOB.resource, study.tuner.namespace, name, uid_of(study.jobs[name]))
