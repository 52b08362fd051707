"""Whole lives of random graphs: every order of ends, failures, losses, and the service killed between any two effects; each compared
with an independent model of the rules."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.resources import PODS
from gryvia_workflow.settings import WorkflowSettings

from . import model

LIFE = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
ENDED = ("Succeeded", "Failed", "Skipped")
JOB = {"type": "training", "gpus": 0, "image": "python:3.11"}


def spec_of(plan):
    step = {"name": plan.name, "dependsOn": plan.depends, "retries": plan.retries, "finally": plan.last}
    if plan.checks:
        step["condition"] = " && ".join(f"steps.{name}.status {sign} '{phase}'" for name, sign, phase in plan.checks)
    if plan.looped:
        step["withItems"] = list(range(len(plan.fails)))
    if int(plan.name[1:]) % 2:
        step["jobTemplate"] = JOB
    return step


class Life:
    """Plays a workflow's children at random until it ends."""

    def __init__(self, cluster, plans, chance, slots):
        self.cluster, self.chance, self.slots = cluster, chance, slots
        self.plans = {plan.name: plan for plan in plans}
        self.failed, self.lost = Counter(), Counter()
        self.over = {}
        cluster.while_dead = self.while_dead

    def look(self):
        """What must hold after every pass."""
        cluster = self.cluster
        assert max(cluster.made.values(), default=0) <= 1, "a child was made twice"
        assert len(self.alive()) <= self.slots
        for name, step in cluster.steps.items():
            if name in self.over:
                assert step["phase"] == self.over[name], "an end did not stick"
            elif step["phase"] in ENDED:
                self.over[name] = step["phase"]

    def alive(self):
        children = [
            (name, one) for (type, name), one in self.cluster.objects.items() if type in (PODS, AI_JOB.resource)
        ]
        return [name for name, one in children if not (one.get("status") or {}).get("phase")]

    def while_dead(self):
        """What the status may not know of yet ends before there is a service again."""
        for name in self.alive():
            if self.chance.random() < 0.3:
                # A child of which nobody knows and that is gone is simply made.
                self.end(name, deleted=0)

    def settle(self):
        self.cluster.die_before = self.chance.choice([-1, -1, *range(8)])
        self.cluster.settle()
        self.cluster.die_before = -1
        self.look()

    def play(self):
        while self.cluster.phase == "Running":
            name = self.chance.choice(self.cluster.running)
            self.end(name)
            self.settle()

    def end(self, name, deleted=0.5):
        cluster, chance = self.cluster, self.chance
        labels = cluster.child(name)["metadata"]["labels"]
        task = labels["gryvia.io/step"], int(labels.get("gryvia.io/item", 0))
        type = PODS if (PODS, name) in cluster.objects else AI_JOB.resource
        fails = self.plans[task[0]].fails[task[1]]
        if self.lost[task] < 3 and chance.random() < 0.1:
            self.lost[task] += 1
            if chance.random() < deleted:
                del cluster.objects[type, name]
            elif type == PODS:
                cluster.pod(name, lost=True)
            else:
                cluster.job(name, "Preempted")
        elif self.failed[task] < fails:
            self.failed[task] += 1
            cluster.pod(name, fail="no") if type == PODS else cluster.job(name, "Failed")
        else:
            if type == PODS:
                cluster.pod(name, {"n": "1"})
            else:
                cluster.job_pod(name, {"n": "1"})
                cluster.job(name, "Succeeded")


def begin(workflow, seed, size, slots):
    chance = random.Random(seed)
    plans = model.random_plans(chance, size)
    cluster = workflow(*(spec_of(plan) for plan in plans), settings=WorkflowSettings(workflow_max_parallel_steps=slots))
    life = Life(cluster, plans, chance, slots)
    life.look()
    return life, plans


@LIFE
@given(seed=st.integers(0, 2**32), size=st.integers(1, 30), slots=st.integers(1, 10))
@example(seed=1137, size=17, slots=5)
def test_any_life_of_any_graph_ends_as_the_rules_say(workflow, seed, size, slots):
    life, plans = begin(workflow, seed, size, slots)
    life.play()
    cluster, expected = life.cluster, model.ends(plans)
    assert cluster.phases == expected
    assert cluster.phase == ("Failed" if "Failed" in expected.values() else "Succeeded")
    for plan in plans:
        if expected[plan.name] != "Skipped" and not plan.looped:
            step = cluster.steps[plan.name]
            assert step.get("outputs", {}) == ({"n": "1"} if expected[plan.name] == "Succeeded" else {}), (
                "outputs were lost"
            )
            assert step.get("retriesAttempted", 0) == min(plan.fails[0], plan.retries)
            assert step.get("timesLost", 0) == life.lost[plan.name, 0]
    told = Counter((event.step, event.item) for event in cluster.happened("step") if event.phase in ENDED)
    assert set(told.values()) <= {1}
    assert {name for name, item in told if item is None} == set(expected)
    # Nothing is left to do.
    before = cluster.writes.total()
    cluster.after(10**6)
    assert cluster.writes.total() == before


@LIFE
@given(seed=st.integers(0, 2**32), size=st.integers(1, 20))
def test_a_resumed_run_repeats_nothing_that_succeeded_and_ends_well(workflow, seed, size):
    life, plans = begin(workflow, seed, size, 5)
    life.play()
    cluster, first = life.cluster, dict(life.cluster.steps)
    for plan in plans:
        plan.fails = [0 for _ in plan.fails]
    life.over.clear()
    cluster.annotate("gryvia.io/retry-failed", "again")
    life.play()
    assert cluster.phase == "Succeeded"
    for plan in plans:
        before, after = first[plan.name], cluster.steps[plan.name]
        if before["phase"] == "Succeeded" and not plan.last:
            assert after == before
        assert after["phase"] in ("Succeeded", "Skipped")


def test_a_hundred_steps(workflow):
    for seed in (4,):
        life, plans = begin(workflow, seed, 100, 10)
        life.play()
        assert life.cluster.phases == model.ends(plans)


def test_dying_before_each_effect_of_each_pass_of_one_run(workflow):
    """No step twice, none lost: an exhaustive walk through one small run."""
    for effect in range(40):
        cluster = workflow(
            {"name": "ok", "type": "approval"},
            {"name": "a", "dependsOn": ["ok"], "retries": 1},
            {"name": "b", "dependsOn": ["a"], "withItems": [1, 2]},
            {
                "name": "reg",
                "dependsOn": ["b"],
                "register": {"modelName": "m", "version": "1", "artifacts": {"pvcName": "p"}},
            },
        )
        cluster.die_before = effect
        cluster.answer("ok")
        cluster.finish("wf-a", fail="no")
        cluster.finish("wf-a-r1", {"long": "x" * 3000})
        cluster.finish("wf-b-i1")
        cluster.finish("wf-b-i0")
        assert cluster.phase == "Succeeded"
        assert set(cluster.made.values()) == {1}
        assert cluster.steps["ok"]["approval"]["by"] == "ann"
        assert cluster.steps["a"]["retriesAttempted"] == 1
