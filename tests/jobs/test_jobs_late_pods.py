"""A Job that is seen to end before its pods are: each type comes on a watch of its own, and after an outage both come late."""

from __future__ import annotations

import copy

import pytest

from gryvia_common.kube.resources import PODS


def ended_behind_our_back(c, pod, *, after: float):
    """The pod ends well with a report, its Job with it; what we are shown `after` seconds later is the Job alone."""
    c.start(pod)
    c.settle()
    seen = copy.deepcopy(pod)
    c.end(pod, message='{"score": 0.5}')
    told = copy.deepcopy(pod)
    pod["status"] = seen["status"]
    c.later(after)
    c.settle()
    return told


@pytest.fixture
def c(cluster):
    made = cluster({})
    made.settle()
    made.make_pods()
    return made


@pytest.mark.parametrize("after", [0, 30, 3600])
def test_the_report_of_a_pod_that_was_seen_to_live_is_waited_for_however_late_its_end_comes(c, after):
    [pod] = c.pods()
    told = ended_behind_our_back(c, pod, after=after)
    assert c.phase == "Running"
    c.later(300)
    c.settle()
    assert c.phase == "Running"
    pod["status"] = told["status"]
    c.settle()
    assert c.phase == "Succeeded"
    assert c.status["metrics"]["values"] == {"score": 0.5}
    assert not c.condition("MetricsValid")


@pytest.mark.parametrize("after", [0, 3600])
def test_pods_that_nobody_shows_us_are_waited_for_from_when_we_saw_the_end(c, after):
    [pod] = c.pods()
    told = ended_behind_our_back(c, pod, after=0)
    del c.children[PODS][pod["metadata"]["name"]]
    c.later(after)
    c.settle()
    c.later(50)
    c.settle()
    assert c.phase == "Running"
    c.children[PODS][pod["metadata"]["name"]] = told
    c.settle()
    assert c.phase == "Succeeded"
    assert c.status["metrics"]["values"] == {"score": 0.5}


def test_pods_that_somebody_deleted_are_given_up_and_the_waiting_is_said(c):
    [pod] = c.pods()
    ended_behind_our_back(c, pod, after=0)
    del c.children[PODS][pod["metadata"]["name"]]
    c.later(61)
    c.settle()
    assert c.phase == "Running"
    assert c.condition("MetricsValid")["reason"] == "PodsAwaited"
    writes = len(c.writes)
    c.later(59)
    c.settle()
    assert len(c.writes) == writes
    c.later(2)
    c.settle()
    assert c.phase == "Succeeded"
    assert not c.condition("MetricsValid")
