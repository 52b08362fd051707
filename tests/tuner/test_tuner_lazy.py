"""A pass of a large study pays for the trials that may still change, not for those that are over."""

from __future__ import annotations

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.trials import TrialRecord, archive_name, encode_block, to_trial, trial_name
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.world import Children, FixedWorld
from gryvia_tuner.trials import child_metadata, manifest

JOBS, ACTIVE = 20_000, 8


def test_of_20000_jobs_only_those_of_active_trials_are_decoded(study):
    """Also one that was created just before a crash, which nothing else knows of."""
    cluster = study(maxTrials=JOBS, parallelism=ACTIVE)
    at, over, began = timestamp(cluster.now), JOBS - ACTIVE, JOBS - ACTIVE
    tuner = parse_object(AUTO_TUNER, cluster.raw)
    parameters = {"lr": "0.01", "layers": "2", "act": "relu"}
    records = [TrialRecord(n, parameters, "Succeeded", float(n), at, at) for n in range(over)]
    active = [TrialRecord(n, parameters, "Running", started=at) for n in range(began, JOBS - 1)]
    blocks = [
        {
            "metadata": child_metadata(tuner, archive_name("study", block), "trial-archive"),
            "data": {"trials.json": encode_block(records[block * 500 : (block + 1) * 500])},
        }
        for block in range(40)
    ]
    cluster.raw["status"] = {
        "phase": "Running",
        "startTime": at,
        "trialsLaunched": JOBS - 1,
        "trials": [to_trial("study", record).wire() for record in [*records[-50:], *active]],
    }
    decoded: list[int] = []

    def decode(index: int) -> Json:
        decoded.append(index)
        return {**manifest(tuner, index, parameters), "status": {"phase": "Running", "startTime": at}}

    jobs = Children([trial_name("study", number) for number in range(JOBS)], decode)
    world = FixedWorld(owned={AI_JOB.resource: jobs, CONFIG_MAPS: Children.of(blocks)})
    plan = cluster.controller.decide(parse_object(AUTO_TUNER, cluster.raw), world, cluster.now)
    assert plan.status.trials_launched == JOBS
    assert plan.status.trials_running == ACTIVE
    assert plan.status.archived_trials == over
    assert sorted(decoded) == list(range(began, JOBS))
