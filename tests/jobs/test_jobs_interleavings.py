"""Random lives: pods come and go, people and other controllers interfere, the service crashes between any two effects."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from gryvia_common.kube.resources import JOBS, PODS, STATEFUL_SETS

FINAL = {"Succeeded", "Failed", "Rejected", "Cancelled"}
SPECS = [
    {},
    {"storage": "fast", "retryLimit": 2},
    {"distributed": {"enabled": True, "nodes": 3}, "retryLimit": 1},
    {"type": "inference"},
    {"gpus": 2, "suspend": True},
    {"timeout": "never"},
    {"metricPatterns": {"loss": r"loss (\S+)"}},
]


def life(make: Any) -> type[RuleBasedStateMachine]:
    class Life(RuleBasedStateMachine):
        @initialize(spec=st.sampled_from(SPECS), queue=st.booleans())
        def begin(self, spec, queue):
            self.c = make(spec, labels={"kueue.x-k8s.io/queue-name": "q"} if queue else {})
            self.before = ""

        def pod(self, choice):
            pods = [p for p in self.c.pods() if p["status"]["phase"] not in ("Succeeded", "Failed")]
            return pods[choice % len(pods)] if pods else None

        @rule(crash=st.none() | st.integers(0, 4))
        def a_pass(self, crash):
            self.c.step(crash)

        @rule()
        def actions_end(self):
            self.c.act()

        @rule()
        def the_service_restarts(self):
            self.c.observations.clear()
            self.c.refusals.clear()
            self.c.wanted = ()

        @rule()
        def the_job_controller_makes_pods(self):
            self.c.make_pods()

        @rule(choice=st.integers(0, 5))
        def a_pod_starts(self, choice):
            pod = self.pod(choice)
            if pod is not None:
                self.c.start(pod)

        @rule(choice=st.integers(0, 5), text=st.sampled_from(["0.5", "nan", "1e3", "_"]))
        def a_pod_reports(self, choice, text):
            pod = self.pod(choice)
            if pod is not None:
                self.c.say(
                    pod, f"loss {text}", 'gryvia-report {"step": 1, "acc": ' + ("1" if text == "_" else '"inf"') + "}"
                )

        @rule(choice=st.integers(0, 5), code=st.sampled_from([0, 0, 1]), disrupted=st.booleans())
        def a_pod_ends(self, choice, code, disrupted):
            pod = self.pod(choice)
            if pod is not None and self.c.children[JOBS]:
                self.c.end(pod, code=code, disrupted=disrupted and code != 0)

        @rule(seconds=st.integers(1, 4000))
        def time_passes(self, seconds):
            self.c.later(seconds)

        @rule()
        def somebody_annotates_cancel(self):
            self.c.annotate(cancel="true")

        @precondition(lambda self: self.c.phase not in FINAL)
        @rule(phase=st.sampled_from(["Cancelled", "Rejected", "Preempted"]))
        def another_controller_ends_it(self, phase):
            self.c.patch(phase=phase)
            self.before = phase

        @precondition(lambda self: self.c.phase in ("", "Pending", "Preempted"))
        @rule(phase=st.sampled_from(["Queued", "Pending"]))
        def a_quota_holds_or_lets_go(self, phase):
            self.c.patch(phase=phase)
            self.before = phase

        @precondition(lambda self: self.c.phase == "Queued")
        @rule()
        def a_quota_lets_go(self):
            self.c.patch(phase="Pending")
            self.before = "Pending"

        @rule()
        def kueue_admits(self):
            for job in self.c.children[JOBS].values():
                if "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]:
                    job["spec"]["suspend"] = False

        @rule(change=st.sampled_from([{"suspend": False}, {"image": "other"}, {"gpus": 1}, {"timeout": "x"}]))
        def somebody_edits(self, change):
            self.c.edit(**change)

        @rule()
        def somebody_labels_a_queue(self):
            self.c.job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}

        @rule()
        def somebody_deletes_the_workload(self):
            for resource in (JOBS, STATEFUL_SETS):
                for name in list(self.c.children[resource]):
                    self.c.remove(resource, name)

        @invariant()
        def ends_stick_and_running_never_regresses(self):
            if not hasattr(self, "c"):
                return
            phase, before = self.c.phase, self.before
            if before in FINAL:
                assert phase == before
            if before == "Running":
                assert phase in FINAL | {"Running", "Preempted"}
            assert phase not in ("Unknown",)
            self.before = phase

        @invariant()
        def the_same_world_gives_the_same_plan(self):
            if hasattr(self, "c"):
                assert self.c.plan() == self.c.plan()

        @invariant()
        def at_most_one_workload(self):
            if hasattr(self, "c"):
                assert len(self.c.children[JOBS]) + len(self.c.children[STATEFUL_SETS]) <= 1

        @invariant()
        def what_is_reported_is_finite(self):
            if hasattr(self, "c"):
                values = (self.c.status.get("metrics") or {}).get("values") or {}
                assert values.get("acc", 1) == 1
                assert values.get("loss", 0.5) in (0.5, 1000)

        def teardown(self):
            """Left alone it settles, and then writes nothing more; an end leaves nothing running."""
            if not hasattr(self, "c"):
                return
            self.c.settle()
            self.ends_stick_and_running_never_regresses()
            writes = len(self.c.writes)
            self.c.later(30)
            self.c.settle()
            self.c.the_end = True
            assert len(self.c.writes) == writes
            if self.c.phase in {"Rejected", "Cancelled", "Preempted"}:
                unfinished = [
                    w
                    for r in (JOBS, STATEFUL_SETS)
                    for w in self.c.children[r].values()
                    if not (w.get("status") or {}).get("conditions")
                ]
                assert not unfinished
                assert self.c.phase != "Rejected" or not self.c.children[JOBS]
            if self.c.phase in FINAL:
                assert self.c.status["completionTime"]
                assert self.c.status.get("gpusAllocated") in (0, None)
                # A crash between an event and its status, then another end: both were told, the real one last.
                ends = [e.verb for e in self.c.events if e.verb in ("succeeded", "failed", "cancelled", "rejected")]
                assert ends[-1] == self.c.phase.lower()
            live = [p for p in self.c.children[PODS].values() if p["status"]["phase"] == "Running"]
            if self.c.phase in {"Cancelled", "Rejected", "Preempted"}:
                assert not live or any(
                    (j.get("status") or {}).get("conditions") for j in self.c.children[JOBS].values()
                )

    return Life


def test_random_lives(cluster):
    run_state_machine_as_test(
        life(cluster),
        settings=settings(
            max_examples=150,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
