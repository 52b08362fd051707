"""tuner-suggest and tuner-object-size: what a large study costs.

tuner-suggest: milliseconds for one bayesian suggestion with 1,000 results known, median of 40, six parameters of all types,
built from the history each time as a pass of the service does.
tuner-object-size: the largest the tuner object ever is in a life of 20,000 trials, 32 at a time, run by the service's own decide
function against a dictionary; also the writes of the archive, and the time of a pass at the end.

    python -m bench.tuner_scale [trials]
"""

from __future__ import annotations

import copy
import math
import statistics
import sys
import time
from collections.abc import Iterable, Set
from datetime import UTC, datetime, timedelta

import numpy as np
import orjson

from bench.results import Line, line, run_measure
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.trials import history
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.parsing import parse_object
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.world import Children, FixedWorld
from gryvia_search.parameters import Parameter
from gryvia_search.search import Known, Search, seed, seen_by_model
from gryvia_search.space import Space
from gryvia_tuner.controller import controller
from gryvia_tuner.settings import TunerSettings

NAMES = ("tuner-suggest", "tuner-object-size", "tuner-archive-size", "tuner-archive-writes", "tuner-pass")
TRIALS = 20_000
SUGGEST_GOAL = 20.0
SIZE_GOAL = 300_000
PARAMETERS: list[Json] = [
    {"name": "learning_rate", "type": "float", "min": 1e-5, "max": 0.1, "scale": "log"},
    {"name": "dropout", "type": "float", "min": 0.0, "max": 0.6},
    {"name": "weight_decay", "type": "float", "min": 1e-6, "max": 0.01, "scale": "log"},
    {"name": "layers", "type": "int", "min": 1, "max": 24},
    {"name": "batch_size", "type": "int", "values": ["16", "32", "64", "128", "256"]},
    {"name": "optimizer", "type": "categorical", "values": ["adam", "sgd", "lion"]},
]


def run(wanted: Set[str] = frozenset(NAMES), trials: int = TRIALS) -> Iterable[Line]:
    if "tuner-suggest" in wanted:
        yield _suggest()
    if wanted - {"tuner-suggest"}:
        yield from _large_study(trials)


def _suggest() -> Line:
    space = Space(tuple(_parameter(one).dimension() for one in PARAMETERS))
    rng = np.random.default_rng(1)
    points = list(dict.fromkeys(space.draw(rng) for _ in range(1000)))
    known = [Known(point, _loss(space.parameters(point))) for point in points]
    search, tried, times = Search(), set(points), []
    for number in range(len(known), len(known) + 40):
        started = time.perf_counter()
        point = search.suggest("bayesian", space, seed("bench", number), seen_by_model(known), tried)
        times.append((time.perf_counter() - started) * 1000)
        assert point is not None
        tried.add(point)
        known.append(Known(point, _loss(space.parameters(point))))
    return line("tuner-suggest", statistics.median(times), "ms a suggestion at 1,000 trials", SUGGEST_GOAL)


def _large_study(trials: int) -> Iterable[Line]:
    life = _Life(trials)
    while life.phase != "Succeeded":
        life.work()
    found = history(life.raw, life.config_maps.values())
    assert len({trial.name for trial in found}) == len(found) == trials
    yield line("tuner-object-size", life.largest, "bytes at most", SIZE_GOAL)
    yield line(
        "tuner-archive-size",
        max((len(orjson.dumps(one)) for one in life.config_maps.values()), default=0),
        "bytes a ConfigMap at most",
        1_000_000,
    )
    yield line("tuner-archive-writes", round(life.archive_writes * 100 / trials, 2), "writes in 100 trials", 1.5)
    yield line(
        "tuner-pass",
        round(statistics.median(life.times[-10:]) * 1000, 1),
        "ms a pass at the end, 32 launches in it",
        2000,
    )


def _parameter(one: Json) -> Parameter:
    return Parameter(**{**one, "values": tuple(one.get("values", ()))})


def _loss(parameters: dict[str, str]) -> float:
    rate = float(parameters["learning_rate"])
    return abs(math.log10(rate) + 3) + float(parameters["dropout"]) + abs(int(parameters["layers"]) - 9) / 10


class _Life:
    """One study whose jobs all succeed between two passes."""

    def __init__(self, trials: int) -> None:
        self.controller = controller(TunerSettings(tuner_max_trials=trials))
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.jobs: dict[str, Json] = {}
        self.config_maps: dict[str, Json] = {}
        self.largest = self.archive_writes = 0
        self.times: list[float] = []
        meta = {"name": "study", "namespace": "ns", "uid": "bench", "creationTimestamp": "2026-01-01T00:00:00Z"}
        spec = {
            "searchAlgorithm": "bayesian",
            "objective": {"metricName": "loss", "direction": "minimize"},
            "parameterSpace": PARAMETERS,
            "maxTrials": trials,
            "parallelism": 32,
            "jobTemplate": {"type": "training", "gpus": 0, "image": "python:3.11"},
        }
        self.raw: Json = {"metadata": meta, "spec": spec}

    @property
    def phase(self) -> str:
        return str(self.raw.get("status", {}).get("phase", ""))

    def work(self) -> None:
        started = time.perf_counter()
        plan = self._decide()
        took = time.perf_counter() - started
        if any(one.resource == AI_JOB.resource for one in plan.apply):
            self.times.append(took)
        for apply in plan.apply:
            name = apply.manifest["metadata"]["name"]
            store = self.jobs if apply.resource == AI_JOB.resource else self.config_maps
            if apply.resource == CONFIG_MAPS and store.get(name) != apply.manifest:
                self.archive_writes += 1
            store[name] = copy.deepcopy(apply.manifest)
        if plan.status is not None:
            self.raw = {**self.raw, "status": plan.status.wire()}
        self.largest = max(self.largest, len(orjson.dumps(self.raw)))
        self.now += timedelta(seconds=30)
        for trial in self.raw["status"]["trials"]:
            if trial["phase"] == "Pending":
                status = {"phase": "Succeeded", "metrics": {"values": {"loss": _loss(trial["parameters"])}}}
                self.jobs[trial["name"]] = {**self.jobs[trial["name"]], "status": status}

    def _decide(self) -> Plan:
        names = list(self.jobs)
        owned = {
            AI_JOB.resource: Children(names, lambda index: self.jobs[names[index]]),
            CONFIG_MAPS: Children.of(self.config_maps.values()),
        }
        return self.controller.decide(parse_object(AUTO_TUNER, self.raw), FixedWorld(owned=owned), self.now)


if __name__ == "__main__":
    run_measure(run(trials=int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS))
