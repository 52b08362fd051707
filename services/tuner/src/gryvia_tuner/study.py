"""A study as one pass sees it: the spec's meaning, every trial as its job has it now, and what follows from these.

Everything that can be derived is derived, never stored. Of the jobs only those are decoded whose trials may still change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import GryviaAutoTunerSpec
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.reported import points_of
from gryvia_common.kinds.trials import ReadBlock, TrialRecord, archived, to_records, trial_name, trial_number
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.world import World
from gryvia_search.rungs import Rungs
from gryvia_search.search import Search
from gryvia_search.space import Space
from gryvia_tuner import trials, validation, warmstart
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.trials import Tuner

Records = Mapping[int, TrialRecord]


@dataclass(frozen=True, slots=True)
class Tools:
    """What a pass uses besides its inputs: the limits, and bounded caches of pure functions."""

    settings: TunerSettings
    search: Search
    read_block: ReadBlock


@dataclass(frozen=True)
class Study:
    """`before`: the trials as the status has them; `recent`: these and the adopted ones as they are now; `archived`: all in the
    archive. `space` None: the spec is `invalid`. Not slotted: what is derived is cached."""

    tuner: Tuner
    world: World
    now: datetime
    space: Space | None
    invalid: str
    archived: Records
    before: Records
    recent: Records
    warm: warmstart.Warm

    def having(self, changed: Records) -> Study:
        return replace(self, recent={**self.recent, **changed}) if changed else self

    @property
    def spec(self) -> GryviaAutoTunerSpec:
        return self.tuner.spec

    @property
    def minimize(self) -> bool:
        return self.spec.objective.direction == "minimize"

    @property
    def rungs(self) -> Rungs | None:
        """None for a study of another algorithm than asha."""
        config = self.spec.asha_config
        return validation.rungs_of(config) if config is not None and self.spec.search_algorithm == "asha" else None

    @property
    def started(self) -> datetime:
        start = self.tuner.status.start_time
        return parse_timestamp(start) if start else self.now

    @cached_property
    def records(self) -> Records:
        return {**self.archived, **self.recent}

    @cached_property
    def active(self) -> list[TrialRecord]:
        return [record for record in self.records.values() if record.active]

    @cached_property
    def counts(self) -> Counter[str]:
        """Trials by phase."""
        return Counter(record.phase for record in self.records.values())

    @cached_property
    def best(self) -> TrialRecord | None:
        """The best result; of equal ones the first completed."""
        sign = 1.0 if self.minimize else -1.0
        found = (record for record in self.records.values() if record.result is not None)
        return min(found, key=lambda one: (sign * (one.result or 0.0), one.ended, one.number), default=None)

    @cached_property
    def stopping(self) -> Mapping[int, Json]:
        """The jobs that must not run on and still hold a slot, by the number of their trial."""
        over = sorted(number for number, record in self.recent.items() if record.abandoned)
        return {number: job for number in over if (job := self.job(number)) is not None and trials.alive(job)}

    def name_of(self, number: int) -> str:
        """The name of a trial, which is that of its job."""
        return trial_name(self.tuner.name, number)

    def job(self, number: int) -> Json | None:
        return self.world.child(AI_JOB.resource, self.name_of(number))


def read(tuner: Tuner, world: World, now: datetime, tools: Tools) -> Study:
    space, invalid = validation.check(tuner.spec, tools.settings)
    kept = archived(world.children(CONFIG_MAPS), tuner.name, tools.read_block)
    before = to_records(tuner.status.trials or ())
    warm = warmstart.reused(tuner, world, space, tools.read_block) if space else warmstart.Warm()
    study = Study(tuner, world, now, space, invalid, kept, before, before, warm)
    known = {**before, **_unknown(study)}
    return replace(study, recent={n: known[n] if n in kept else _synced(study, known[n]) for n in sorted(known)})


def _unknown(study: Study) -> Records:
    """The trials whose jobs were created before a crash and noted nowhere."""
    jobs = study.world.children(AI_JOB.resource)
    named = {n: name for name in jobs.names if (n := trial_number(name)) is not None and n not in study.records}
    return {n: trials.adopted(n, job) for n, name in named.items() if (job := jobs.named(name)) is not None}


def _synced(study: Study, record: TrialRecord) -> TrialRecord:
    """With what its job has reported at the rungs, and as the job is now."""
    if not record.active and (record.phase != "Succeeded" or record.value is not None):
        return record
    job, rungs, metric = study.job(record.number), study.rungs, study.spec.objective.metric_name
    if rungs is not None and job is not None and record.active:
        record = replace(record, rungs=rungs.reached(record.rungs, points_of(job, metric)))
    refusal = study.world.refusal(AI_JOB.resource, study.name_of(record.number))
    return trials.synced(record, job, refusal, metric, study.now)
