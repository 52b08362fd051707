"""Following the log of one container, as any service does it: no job, no cluster, only a pod and a log."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gryvia_common.errors import Conflict, Gone, GryviaError, Terminal, Transient
from gryvia_common.kube.pods import Pod
from gryvia_common.progress.log import (
    ANSWER_LIMIT,
    FIRST_LINES,
    MOST_ANSWERS,
    MOST_FAILURES,
    READ_LOG,
    LogReading,
    follow_log,
    interval,
    read_log,
)
from gryvia_common.runtime.world import FixedWorld, Observation

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
STARTED = "2026-03-01T12:00:00Z"
PATTERNS = {"loss": r"loss ([0-9.]+)"}


def pod(*, phase: str = "Running", started: str = STARTED, restarts: int = 0) -> Pod:
    ended = phase in ("Succeeded", "Failed")
    state = {"terminated": {"exitCode": 0, "startedAt": started}} if ended else {"running": {"startedAt": started}}
    status = {"phase": phase, "containerStatuses": [{"name": "work", "restartCount": restarts, "state": state}]}
    return Pod({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "status": status}, "work")


@dataclass
class Api:
    """Answers with the log, or raises; remembers what was asked."""

    rows: list[str] = field(default_factory=list)
    error: GryviaError | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def logs(self, namespace: str, pod: str, **options: Any) -> bytes:
        self.asked.append({"namespace": namespace, "pod": pod, **options})
        if self.error is not None:
            raise self.error
        since = options["since_time"].removesuffix("Z")
        return "".join(f"{row}\n" for row in self.rows if row[:19] >= since).encode()[: options["limit_bytes"]]


@dataclass
class Context:
    kube: Any
    previous: object = None
    clock: Any = None
    raw: dict[str, Any] = field(default_factory=lambda: {"metadata": {"name": "owner", "namespace": "ns"}})


def read(api: Api, seen: Pod, previous: object = None) -> LogReading:
    action = follow_log(FixedWorld(), seen, PATTERNS, NOW).action
    assert action is not None
    return asyncio.run(read_log(Context(api, previous), action.arguments))


def world(value: object = None, error: str = "") -> FixedWorld:
    return FixedWorld(observations={"log/u/0": Observation(NOW, value, error)})


def test_a_container_that_has_not_started_has_no_log():
    waiting = Pod({"metadata": {"name": "p", "uid": "u"}, "status": {"phase": "Pending"}}, "work")
    progress = follow_log(FixedWorld(), waiting, {}, NOW)
    assert (progress.reading, progress.action, progress.unread) == (None, None, False)


def test_before_the_first_look_there_is_an_action_and_no_reading():
    progress = follow_log(FixedWorld(), pod(), PATTERNS, NOW)
    assert progress.reading is None
    assert progress.source == ""
    assert progress.action is not None
    assert (progress.action.name, progress.action.key) == (READ_LOG, "log/u/0")
    assert progress.action.arguments == {"pod": "p", "container": "work", "ended": False, "patterns": PATTERNS}


def test_a_restart_in_place_is_another_log():
    progress = follow_log(world(LogReading()), pod(restarts=1), {}, NOW)
    assert progress.reading is None
    assert progress.action is not None
    assert progress.action.key == "log/u/1"


def test_reading_goes_on_where_it_ended():
    api = Api([f"2026-03-01T12:00:0{n}.5Z loss {n}" for n in range(3)])
    first = read(api, pod())
    assert api.asked[0]["tail_lines"] == FIRST_LINES
    assert api.asked[0]["namespace"] == "ns"
    api.rows.append("2026-03-01T12:00:09Z loss 9")
    second = read(api, pod(), first)
    assert api.asked[-1]["since_time"] == "2026-03-01T12:00:02Z"
    assert api.asked[-1]["tail_lines"] is None
    assert [point.values["loss"] for point in second.reading.history] == [0, 1, 2, 9]
    assert follow_log(world(second), pod(), PATTERNS, NOW).source == "read from the log of pod p, run 1"


def test_the_end_is_unread_until_it_was_read_after_the_container_had_ended():
    api = Api(["2026-03-01T12:00:00Z loss 1"])
    while_running = read(api, pod())
    ended = pod(phase="Succeeded")
    waiting = follow_log(world(while_running), ended, PATTERNS, NOW)
    assert waiting.unread
    assert waiting.action is not None
    done = follow_log(world(read(api, ended, while_running)), ended, PATTERNS, NOW)
    assert (done.unread, done.action, done.error) == (False, None, "")


def test_an_end_that_cannot_be_read_is_given_up_after_three_tries():
    api, ended, value = Api(error=Transient("node is gone")), pod(phase="Failed"), None
    for attempt in range(MOST_FAILURES):
        assert follow_log(world(value), ended, PATTERNS, NOW).unread, attempt
        value = read(api, ended, value)
    progress = follow_log(world(value), ended, PATTERNS, NOW)
    assert (progress.unread, progress.action, progress.error) == (False, None, "node is gone")


def test_failures_while_it_runs_do_not_count_against_the_last_read():
    api, value = Api(error=Terminal("forbidden")), None
    for _ in range(MOST_FAILURES + 1):
        value = read(api, pod(), value)
    assert follow_log(world(value), pod(phase="Failed"), PATTERNS, NOW).unread
    running = follow_log(world(value), pod(), PATTERNS, NOW)
    assert running.action is not None
    assert running.error == ""


def test_a_pod_that_is_gone_is_the_end_of_its_log():
    ended = pod(phase="Succeeded")
    progress = follow_log(world(read(Api(error=Gone("404")), ended)), ended, PATTERNS, NOW)
    assert (progress.unread, progress.error) == (False, "the pod and its log are gone")


def test_a_runner_that_fails_ends_the_wait_as_well():
    progress = follow_log(world(error="boom"), pod(phase="Succeeded"), PATTERNS, NOW)
    assert (progress.unread, progress.error) == (False, "boom")


def test_a_runner_that_fails_while_the_container_runs_is_tried_again():
    progress = follow_log(world(error="boom"), pod(), PATTERNS, NOW)
    assert progress.action is not None
    assert progress.error == ""


def test_other_errors_are_not_swallowed():
    with pytest.raises(Conflict):
        read(Api(error=Conflict("no such answer")), pod())


def test_a_log_longer_than_one_run_reads_is_gone_on_with_at_once():
    """Each answer holds at most a megabyte and a run at most eight of them; nothing of it is the end yet."""
    row = " " + "y" * (ANSWER_LIMIT // 2)
    rows = [f"2026-03-01T12:{n // 60:02}:{n % 60:02}Z{row}" for n in range(4 * MOST_ANSWERS)]
    api, ended = Api([*rows, "2026-03-01T13:00:00Z loss 5"]), pod(phase="Succeeded")
    value: object = None
    runs = 0
    while follow_log(world(value), ended, PATTERNS, NOW).unread:
        value, runs = read(api, ended, value), runs + 1
        assert runs < 20
    assert runs > 1
    assert isinstance(value, LogReading)
    assert value.reading.values == {"loss": 5}


@pytest.mark.parametrize(
    ("age", "reports", "seconds"), [(0, True, 1), (50, True, 5), (9999, True, 15), (9999, False, 60), (-5, True, 1)]
)
def test_an_old_run_is_looked_at_less_often_and_a_silent_one_least(age, reports, seconds):
    assert interval(age, reports) == seconds


def test_the_last_read_is_at_once_and_more_patient_after_a_failure():
    ended = pod(phase="Succeeded")
    first = follow_log(FixedWorld(), ended, {}, NOW + timedelta(hours=5)).action
    again = follow_log(world(LogReading(failures=1)), ended, {}, NOW + timedelta(hours=5)).action
    assert first is not None
    assert again is not None
    assert first.every < again.every < 5
