"""Laws of the Job controller as a pure function, over random lives of its pods."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gryvia_devcluster.clock import stamp
from gryvia_devcluster.controllers.actions import Again, Create, Merge, Remove, Replace
from gryvia_devcluster.controllers.job.indexes import format_indexes, parse_indexes
from gryvia_devcluster.controllers.job.pods import INDEX
from gryvia_devcluster.controllers.job.policy import success_rule_met
from gryvia_devcluster.controllers.job.sync import sync_job

Json = dict[str, Any]


@given(st.sets(st.integers(0, 60)))
def test_indexes_survive_being_written_and_read(indexes: set[int]) -> None:
    text = format_indexes(indexes)
    assert parse_indexes(text) == indexes
    assert parse_indexes(text, 30) == {i for i in indexes if i < 30}


def test_neighbours_are_written_as_the_real_controller_does() -> None:
    assert format_indexes([1, 3, 4, 5, 7, 8]) == "1,3-5,7,8"
    assert format_indexes([]) == ""


@given(st.sets(st.integers(0, 7)), st.sets(st.integers(0, 7), min_size=1), st.integers(1, 8))
def test_a_success_rule_holds_exactly_when_enough_of_its_indexes_are_done(
    done: set[int], wanted: set[int], count: int
) -> None:
    rule = {"succeededIndexes": format_indexes(wanted), "succeededCount": count}
    job = {"spec": {"completions": 8, "successPolicy": {"rules": [rule]}}}
    assert bool(success_rule_met(job, done)) == (len(done & wanted) >= count)
    every = {"spec": {"completions": 8, "successPolicy": {"rules": [{"succeededIndexes": format_indexes(wanted)}]}}}
    assert bool(success_rule_met(every, done)) == (wanted <= done)


class World:
    """A Job and its pods as plain data, on which actions are carried out."""

    def __init__(self, **spec: Any) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
        meta = {"name": "j", "namespace": "n", "uid": "u", "resourceVersion": "1"}
        self.job: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "status": {}}
        self.job["spec"] = {"template": template, **spec}
        self.pods: dict[str, Json] = {}
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.made = 0
        self.wake: datetime | None = None

    def sync(self) -> None:
        """Passes until one changes nothing, as the queue would run them."""
        for _ in range(50):
            before = copy.deepcopy((self.job, self.pods))
            self.wake = None
            for action in sync_job(self.job, list(self.pods.values()), self.now):
                self.carry_out(action)
            if (self.job, self.pods) == before:
                return
        raise AssertionError("the controller does not come to rest")

    def carry_out(self, action: Any) -> None:
        match action:
            case Create(obj, _):
                self.made += 1
                name = f"{obj['metadata']['generateName']}{self.made:05}"
                metadata = {**obj["metadata"], "name": name, "uid": name, "creationTimestamp": stamp(self.now)}
                self.pods[name] = {**obj, "metadata": metadata, "status": {"phase": "Pending"}}
            case Replace(obj, "status"):
                self.job = {**self.job, "status": obj["status"]}
            case Merge(obj, body, _):
                pod = self.pods[obj["metadata"]["name"]]
                pod["metadata"]["finalizers"] = body["metadata"]["finalizers"] or []
                self.drop_free(pod)
            case Remove(obj, _, _):
                if (pod := self.pods.get(obj["metadata"]["name"])) is not None:
                    pod["metadata"]["deletionTimestamp"] = stamp(self.now)
                    self.drop_free(pod)
            case Again(at):
                self.wake = min(self.wake or at, at)

    def drop_free(self, pod: Json) -> None:
        if "deletionTimestamp" in pod["metadata"] and not pod["metadata"]["finalizers"]:
            self.pods.pop(pod["metadata"]["name"], None)

    def active(self) -> list[Json]:
        living = ("Pending", "Running")
        pods = self.pods.values()
        return [p for p in pods if p["status"]["phase"] in living and "deletionTimestamp" not in p["metadata"]]

    def end(self, pod: Json, code: int) -> None:
        terminated = {"exitCode": code, "finishedAt": stamp(self.now)}
        states = [{"name": "main", "state": {"terminated": terminated}}]
        pod["status"] = {"phase": "Failed" if code else "Succeeded", "containerStatuses": states}

    def condition(self, kind: str) -> bool:
        return any(c["type"] == kind and c["status"] == "True" for c in self.job["status"].get("conditions", ()))


@given(
    completions=st.integers(1, 6),
    parallelism=st.integers(1, 6),
    limit=st.integers(0, 6),
    outcomes=st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 0, 1])), max_size=40),
)
def test_an_indexed_job_keeps_its_promises_whatever_its_pods_do(
    completions: int, parallelism: int, limit: int, outcomes: list[tuple[int, int]]
) -> None:
    world = World(completionMode="Indexed", completions=completions, parallelism=parallelism, backoffLimit=limit)
    world.sync()
    failures, succeeded = 0, set()
    for choice, code in outcomes:
        active = world.active()
        if not active:
            if world.wake is None:
                break
            world.now = world.wake
            world.sync()
            continue
        pod = active[choice % len(active)]
        index = int(pod["metadata"]["annotations"][INDEX])
        assert index not in succeeded
        world.end(pod, code)
        world.sync()
        failures += code
        succeeded |= set() if code else {index}
        indexes = [p["metadata"]["annotations"][INDEX] for p in world.active()]
        assert len(indexes) == len(set(indexes)) <= parallelism
    status = world.job["status"]
    over = failures > limit
    assert world.condition("Failed") == over
    assert world.condition("Complete") == (len(succeeded) == completions and not over)
    assert parse_indexes(status.get("completedIndexes", "")) == succeeded
    assert status.get("succeeded", 0) == len(succeeded)
    assert status.get("failed", 0) == failures
    assert status.get("active", 0) == len(world.active())
    if over or world.condition("Complete"):
        assert world.active() == []


@given(st.integers(1, 9))
def test_the_back_off_doubles_from_ten_seconds_to_ten_minutes(failures: int) -> None:
    world = World(completions=1, parallelism=1, backoffLimit=100)
    world.sync()
    for number in range(failures):
        (pod,) = world.active()
        world.end(pod, 1)
        world.sync()
        assert world.active() == []
        expected = min(timedelta(seconds=10 * 2**number), timedelta(minutes=10))
        assert world.wake is not None
        assert world.wake - world.now == expected
        world.now = world.wake
        world.sync()


@given(st.integers(0, 5), st.integers(1, 5))
def test_a_suspended_job_has_no_pods_and_a_resumed_one_has_them_again(succeed: int, parallelism: int) -> None:
    world = World(completionMode="Indexed", completions=6, parallelism=parallelism)
    world.sync()
    for _ in range(succeed):
        world.end(world.active()[0], 0)
        world.sync()
    world.job["spec"]["suspend"] = True
    world.sync()
    assert world.active() == []
    assert "startTime" not in world.job["status"]
    assert "failed" not in world.job["status"]
    world.job["spec"]["suspend"] = False
    world.sync()
    assert len(world.active()) == min(parallelism, 6 - succeed)
    assert world.job["status"].get("succeeded", 0) == succeed


def test_a_second_pod_for_an_index_is_taken_away() -> None:
    world = World(completionMode="Indexed", completions=2, parallelism=2)
    world.sync()
    extra = copy.deepcopy(world.active()[0])
    extra["metadata"] |= {"name": "extra", "uid": "extra", "creationTimestamp": "2031-01-01T00:00:00Z"}
    world.pods["extra"] = extra
    world.sync()
    assert sorted(p["metadata"]["annotations"][INDEX] for p in world.active()) == ["0", "1"]
    assert "extra" not in world.pods
