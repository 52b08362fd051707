"""Metrics from logs, termination messages and annotations, on the small cluster."""

from __future__ import annotations

import json

import pytest

from gryvia_common.errors import Gone, Transient
from gryvia_common.kube.resources import PODS
from gryvia_common.progress.log import ANSWER_LIMIT


def running(c):
    c.settle()
    c.make_pods()
    c.settle()
    c.start(c.pods()[0])
    c.settle()
    return c.pods()[0]


def report(**values):
    return "gryvia-report " + json.dumps(values)


def test_reported_metrics_reach_the_status_while_the_job_runs(cluster):
    c = cluster({})
    pod = running(c)
    c.say(pod, "hello", report(step=1, loss=0.9, val_accuracy=0.5), report(step=2, loss=0.7, val_accuracy=0.6))
    c.settle()
    metrics = c.status["metrics"]
    assert metrics["loss"] == 0.7
    assert metrics["step"] == 2
    assert metrics["values"] == {"step": 2, "loss": 0.7, "val_accuracy": 0.6}
    assert [(p["step"], p["values"]["loss"]) for p in metrics["history"]] == [(1, 0.9), (2, 0.7)]


def test_the_last_line_counts_though_the_job_ended_right_after_it(cluster):
    """The phase waits for the rest of the log, so that whoever sees Succeeded sees the metric."""
    c = cluster({})
    pod = running(c)
    c.say(pod, report(loss=0.5))
    c.later(5)
    c.say(pod, report(loss=0.1))
    c.end(pod)
    assert not c.step()
    assert c.phase == "Running"
    c.act()
    c.settle()
    assert c.phase == "Succeeded"
    assert c.status["metrics"]["loss"] == 0.1
    assert c.events[-1].metrics == {"loss": 0.1}


def test_the_end_of_an_attempt_is_one_write_with_its_last_report(cluster):
    """Not one that no pod is ready any more, and another with the number that came with it."""
    c = cluster({"retryLimit": 1})
    pod = running(c)
    c.say(pod, report(loss=0.5))
    c.end(pod, code=1, message='{"accuracy": 0.8}')
    c.writes.clear()
    c.settle()
    assert c.writes == ["status"]
    assert c.status["metrics"]["values"] == {"loss": 0.5, "accuracy": 0.8}
    assert c.status["replicasReady"] == 0


def test_a_job_that_ends_before_anybody_looked_has_its_metric(cluster):
    c = cluster({})
    c.settle()
    c.make_pods()
    pod = c.pods()[0]
    c.start(pod)
    c.say(pod, report(epoch=1, loss=0.25))
    c.end(pod)
    c.settle()
    assert c.phases == ["Pending", "Succeeded"]
    assert c.status["metrics"]["epoch"] == 1
    assert c.status["startTime"]


@pytest.mark.parametrize(
    ("error", "words"),
    [(Transient("node unreachable"), "node unreachable"), (Gone("no pod"), "the pod and its log are gone")],
)
def test_a_log_that_cannot_be_read_does_not_hold_the_job_up(cluster, error, words):
    c = cluster({})
    pod = running(c)
    c.say(pod, report(loss=0.5))
    c.settle()
    c.logs[pod["metadata"]["name"]].error = error
    c.end(pod)
    for _ in range(3):
        c.step()
        c.act()
    c.settle()
    assert c.phase == "Succeeded"
    assert words in c.status["message"]
    assert c.status["metrics"]["loss"] == 0.5
    assert c.condition("MetricsValid")["status"] == "False"


def test_no_number_of_a_failed_attempt_becomes_the_result_of_the_next(cluster):
    c = cluster({"retryLimit": 1})
    pod = running(c)
    c.say(pod, report(loss=0.01))
    c.settle()
    assert c.status["metrics"]["loss"] == 0.01
    c.later(1)
    c.end(pod, code=1)
    c.settle()
    c.later(10)
    c.make_pods()
    c.settle()
    second = c.pods()[1]
    c.start(second)
    c.settle()
    assert "metrics" not in c.status
    c.end(second)
    c.settle()
    assert c.phase == "Succeeded"
    assert "metrics" not in c.status


def test_a_restarted_service_keeps_the_course_of_the_run(cluster):
    """Observations are lost with the process; the log is read again, and what the status knew from before stays."""
    c = cluster({})
    pod = running(c)
    c.say(pod, *(report(step=n, loss=1 / n) for n in range(1, 5)))
    c.settle()
    c.observations.clear()
    c.logs[pod["metadata"]["name"]].lines.clear()
    c.later(60)
    c.say(pod, report(step=9, loss=0.05))
    c.settle()
    assert [p["step"] for p in c.status["metrics"]["history"]] == [1, 2, 3, 4, 9]
    assert c.status["metrics"]["loss"] == 0.05


def test_a_restarted_service_says_nothing_new_of_a_job_it_knows(cluster):
    """What was wrong with a report is still wrong before the log has been read again."""
    c = cluster({})
    pod = running(c)
    c.say(pod, report(step=1, loss=0.9), 'gryvia-report {"loss": "0.5x"}')
    c.settle()
    assert c.condition("MetricsValid")["status"] == "False"
    c.writes.clear()
    c.observations.clear()
    c.settle()
    assert c.writes == []


def test_a_lost_node_starts_the_metrics_anew_though_no_retry_is_used(cluster):
    """The lost pod is deleted with its node; nothing but MetricsReported tells the next attempt from it."""
    c = cluster({})
    pod = running(c)
    c.say(pod, report(step=50, loss=0.01))
    c.settle()
    c.remove(PODS, pod["metadata"]["name"])
    c.settle()
    c.make_pods()
    c.settle()
    second = c.pods()[0]
    c.start(second)
    c.say(second, report(step=60, loss=0.9))
    c.settle()
    assert [p["step"] for p in c.status["metrics"]["history"]] == [60]
    assert second["metadata"]["name"] in c.condition("MetricsReported")["message"]


def test_only_the_first_pod_of_a_distributed_run_speaks(cluster):
    c = cluster({"distributed": {"enabled": True, "nodes": 3}})
    c.settle()
    c.make_pods()
    for number, pod in enumerate(c.pods()):
        c.start(pod)
        c.say(pod, report(step=1, loss=float(number)))
    c.settle()
    assert c.status["metrics"]["loss"] == 0.0
    assert [log.requests > 0 for _, log in sorted(c.logs.items())] == [True, False, False]


def test_patterns_read_any_log(cluster):
    c = cluster({"metricPatterns": {"loss": r"loss[=:]\s*(\S+)", "epoch": r"Epoch (\d+)/"}})
    pod = running(c)
    c.say(pod, "Epoch 1/10", "  loss: 0.75 - 3s", "Epoch 2/10", "  loss: 0.5 - 3s")
    c.settle()
    assert c.status["metrics"]["epoch"] == 2
    assert [(p["step"], p["values"].get("loss")) for p in c.status["metrics"]["history"]] == [(1, 0.75), (2, 0.5)]


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "", "1_000", " 0.5", "0.5 ", "1.", ".5", "1e", "0x1f", "٣", "1e999"]
)
def test_what_is_no_plain_decimal_is_named_and_never_a_value(cluster, text):
    c = cluster({})
    pod = running(c)
    c.annotate(**{"metric-loss": text})
    c.end(pod)
    c.settle()
    assert c.phase == "Succeeded"
    assert "metrics" not in c.status
    assert "metric loss:" in c.status["message"]
    assert "not a plain finite decimal" in c.status["message"]
    assert c.condition("MetricsValid")["status"] == "False"


def test_not_a_number_in_the_log_keeps_the_last_number_and_says_so(cluster):
    c = cluster({})
    pod = running(c)
    c.say(pod, report(step=1, loss=0.5), report(step=2, loss="nan", acc=0.5))
    c.settle()
    assert c.status["metrics"]["values"] == {"step": 2, "loss": 0.5, "acc": 0.5}
    assert '"nan" is not a plain finite decimal' in c.status["message"]


def test_annotations_and_the_termination_message_count(cluster):
    c = cluster({})
    pod = running(c)
    c.say(pod, report(loss=0.5, acc=0.1))
    c.annotate(**{"metric-f1": "0.75", "metric-throughput": "120 img/s"})
    c.end(pod, message='{"acc": 0.9, "note": "ok", "best": "nan", "n": 3}')
    c.settle()
    metrics = c.status["metrics"]
    assert metrics["values"] == {"loss": 0.5, "acc": 0.9, "n": 3, "f1": 0.75}
    assert metrics["throughput"] == "120 img/s"
    assert "metric best" in c.status["message"]
    assert "note" not in c.status["message"]


def test_a_cut_termination_message_is_said(cluster):
    c = cluster({})
    pod = running(c)
    c.end(pod, message='{"a": "' + "x" * 4089)
    c.settle()
    assert "cut at 4096 bytes" in c.status["message"]


def test_a_long_log_is_read_once(cluster):
    c = cluster({})
    pod = running(c)
    log = c.logs[pod["metadata"]["name"]]
    written = 0
    for burst in range(40):
        c.later(1)
        lines = [f"step {n} " + "x" * 500 for n in range(200)] + [report(step=burst, loss=1.0)]
        written += sum(len(line) for line in lines)
        c.say(pod, *lines)
        c.step()
        c.act()
    c.settle()
    assert c.status["metrics"]["step"] == 39
    assert log.sent < 3 * written


def test_a_burst_above_the_answer_limit_is_read_to_its_end(cluster):
    c = cluster({})
    pod = running(c)
    c.say(pod, "start")
    c.settle()
    c.later(5)
    for second in range(4):
        c.later(1)
        c.say(pod, *("y" * 1500 for _ in range(ANSWER_LIMIT // 1600)), report(step=second, loss=float(second)))
    c.settle()
    assert c.status["metrics"]["loss"] == 3.0


def test_a_second_longer_than_an_answer_does_not_wedge_the_reader(cluster):
    """The API can only be asked by whole seconds: what of that second does not fit is skipped, what follows is read."""
    c = cluster({})
    pod = running(c)
    c.say(pod, "start")
    c.settle()
    c.later(5)
    c.say(pod, *("y" * 9000 for _ in range(900)))
    c.later(2)
    c.say(pod, report(step=9, loss=0.5))
    c.settle()
    assert c.status["metrics"]["step"] == 9


def test_a_succeeded_elastic_run_is_told_by_a_worker_that_succeeded(cluster):
    c = cluster({"retryLimit": 1, "distributed": {"enabled": True, "nodes": 2, "elastic": {"minNodes": 1}}})
    running(c)
    first, second = c.pods()
    c.start(second)
    c.say(first, report(loss=9.0))
    c.say(second, report(loss=0.5))
    c.end(first, code=1)
    c.end(second)
    done = {
        "type": "Complete",
        "status": "True",
        "reason": "SuccessPolicy",
        "lastTransitionTime": "2026-03-01T12:00:00Z",
    }
    c.workload["status"]["conditions"] = [done]
    c.settle()
    assert c.phase == "Succeeded"
    assert c.status["metrics"]["loss"] == 0.5


def test_the_log_of_an_old_run_is_read_less_often(cluster):
    c = cluster({})
    pod = running(c)
    intervals = []
    for seconds in (0, 50, 3600):
        c.later(seconds)
        c.settle()
        intervals.append(c.plan().actions[0].every)
    c.say(pod, report(loss=1))
    c.settle()
    intervals.append(c.plan().actions[0].every)
    assert intervals == [1.0, 5.0, 60.0, 15.0]


def test_the_time_of_the_next_look_stands_while_it_is_waited_for(cluster):
    """An interval that grew with the age of the run was never quite over when it came: five passes for each look."""
    c = cluster({})
    running(c)
    c.later(20)
    c.settle()
    every = c.plan().actions[0].every
    c.later(1.9)
    assert c.plan().actions[0].every == every == 2.0
