"""`gryvia workflows`: what a person sees of a run, and what they may do with it and what not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gryvia_cli.workflow_text import headline, workflow_row
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.runs import RUN_KEY, encode_run, run_name
from gryvia_common.kinds.workflow import WORKFLOW as WORKFLOW_KIND
from gryvia_common.kinds.workflow import GryviaWorkflowStatus
from gryvia_common.kube.children import owned_metadata

WORKFLOW = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata: {{name: {name}}}
spec:
  {more}
  steps:
    - {{name: train, script: {{image: "python:3.11-slim", command: ["true"]}}, retries: 2}}
    - {{name: ask, type: approval, approvers: {approvers}, dependsOn: [train]}}
    - {{name: also, type: approval, dependsOn: [train]}}
    - {{name: deploy, script: {{image: "python:3.11-slim", command: ["true"]}}, dependsOn: [ask, also]}}
"""


def step(name: str, phase: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "phase": phase, **more}


TRAINED = step(
    "train",
    "Succeeded",
    startTime="2026-01-01T00:00:00Z",
    completionTime="2026-01-01T00:01:10Z",
    retriesAttempted=1,
    jobName="w-train-r1",
    outputs={"val_accuracy": "0.97", "text": "x" * 100},
)
FAILED = step("train", "Failed", message="pod w-train ended with exit code 1: [no such file]", retriesAttempted=2)


@pytest.fixture
def put(bench: Any, request: pytest.FixtureRequest) -> Any:
    """Makes a workflow of the test's own; its name."""

    def make(
        *states: dict[str, Any], phase: str = "Running", more: str = "", approvers: str = "[]", **status: Any
    ) -> str:
        name = f"w-{abs(hash(request.node.nodeid)) % 10**9}-{len(made)}"
        state = {"phase": phase, "stepsTotal": 4, "stepsCompleted": 1, "stepStatuses": list(states), **status}
        made.append(bench.put(WORKFLOW.format(name=name, more=more, approvers=approvers), state))
        return name

    made: list[Any] = []
    return make


def test_get_shows_the_run_its_steps_and_what_they_handed_on(bench: Any, put: Any) -> None:
    items = [{"index": 0, "phase": "Succeeded"}, {"index": 1, "phase": "Failed", "message": "out of memory"}]
    long = {"outputs": {"text": "y" * 60}, "outputsIn": "w-deploy-outputs"}
    name = put(TRAINED, step("deploy", "Running", items=items, **long), message="deploy [1] is tried again")
    lines = bench.gryvia("workflows", "get", name).splitlines()
    assert lines[0] == f"{name}: Running, 1 of 4 steps: deploy [1] is tried again"
    assert lines[1].split() == ["STEP", "TYPE", "PHASE", "TIME", "RETRIES", "CHILD", "MESSAGE"]
    assert lines[2].split() == ["train", "script", "Succeeded", "1m10s", "1", "w-train-r1"]
    assert lines[3].split() == ["ask", "approval", "Pending"]
    assert [line.split() for line in lines[5:8]] == [
        ["deploy", "script", "Running"],
        ["[0]", "Succeeded"],
        ["[1]", "Failed", "out", "of", "memory"],
    ]
    assert lines[-3] == "outputs"
    assert lines[-2].startswith("  train: text=xxx")
    assert lines[-2].endswith("… val_accuracy=0.97")
    assert lines[-1].endswith("yyy (whole in ConfigMap w-deploy-outputs)")


def test_get_and_list_for_programs_are_the_objects(bench: Any, put: Any) -> None:
    name = put(TRAINED)
    obj = bench.json("workflows", "get", name)
    assert obj["kind"] == "GryviaWorkflow"
    assert "managedFields" not in obj["metadata"]
    assert name in [one["metadata"]["name"] for one in bench.json("workflows", "list")]
    table, same = (bench.gryvia(*words).splitlines() for words in (("workflows", "list"), ("list", "workflows")))
    assert [line.split()[:4] for line in table] == [line.split()[:4] for line in same]


def test_status_knows_workflows(bench: Any, put: Any) -> None:
    name = put(TRAINED, step("ask", "Running"), run=4)
    facts = dict(line.split(maxsplit=1) for line in bench.gryvia("status", name).splitlines()[1:])
    assert facts["phase"] == "Running"
    assert facts["steps"] == "1 of 4 done"
    assert facts["run"] == "4"
    assert facts["under"].split() == ["way", "ask"]
    assert bench.json("status")["workflows"]["Running"] >= 1
    assert "workflows in namespace default: " in bench.gryvia("status")
    assert "no job, no tuner and no workflow nothing in namespace default" in bench.gryvia("status", "nothing", code=1)


def test_the_list_says_how_far_each_run_is() -> None:
    now = parse_timestamp("2026-01-01T01:00:00Z")
    obj = {
        "metadata": {"name": "nightly", "creationTimestamp": "2025-12-31T23:00:00Z"},
        "spec": {"schedule": "0 3 * * *", "suspend": True, "steps": [{"name": "a"}]},
        "status": {
            "phase": "Scheduled",
            "run": 7,
            "stepsTotal": 1,
            "stepsCompleted": 1,
            "startTime": "2026-01-01T00:00:00Z",
            "completionTime": "2026-01-01T00:00:30Z",
            "nextScheduleTime": "2026-01-01T03:00:00Z",
        },
    }
    assert workflow_row(obj, now) == [
        "nightly",
        "Scheduled",
        "1/1",
        "7",
        "0 3 * * * (suspended)",
        "2h",
        "30s",
        "2h",
        "",
    ]
    assert headline(obj, now) == "nightly: Scheduled, 1 of 1 steps, run 7, 30s, next run in 2h"
    new = {"metadata": {"name": "new"}, "spec": {"steps": [{"name": "a"}, {"name": "b"}]}}
    assert headline(new, now) == "new: Pending, 0 of 2 steps"


def test_the_graph_shows_states(bench: Any, put: Any) -> None:
    name = put(TRAINED, step("ask", "Running"))
    lines = bench.gryvia("workflows", "graph", name).splitlines()
    assert lines[0].startswith("✓   train")
    assert any(line.split()[:3] == ["├─●", "ask", "Running"] for line in lines)


def test_wait_tells_each_change_once_and_ends_with_the_run(bench: Any, put: Any) -> None:
    name = put(step("train", "Running"))
    again = step("train", "Pending", retriesAttempted=1, message="attempt 1 failed: exit code 1")
    acts = [
        ("train: Running", "Running", [again]),
        ("train: Pending: attempt 1 failed: exit code 1", "Running", [TRAINED, step("ask", "Running")]),
        ("train: Succeeded", "", []),
        ("ask: Running", "Succeeded", [TRAINED, step("ask", "Succeeded")]),
        ("ask: Succeeded", "", []),
        (f"{name}: Succeeded, 1 of 4 steps", "", []),
    ]
    with bench.running("workflows", "get", name, "--wait") as program:
        for line, phase, states in acts:
            said = program.stdout.readline().rstrip("\n")
            assert said.removeprefix(said[:10] if said[2] == ":" else "") == line
            if states:
                bench.status("GryviaWorkflow", name, {"phase": phase, "stepStatuses": states})
        assert program.stdout.readline().split()[0] == "STEP"
        program.stdout.read()
        assert program.wait(20) == 0


@pytest.mark.parametrize(
    ("states", "phase", "code"),
    [([TRAINED], "Succeeded", 0), ([FAILED], "Failed", 1), ([TRAINED], "Scheduled", 0), ([FAILED], "Scheduled", 1)],
)
def test_the_exit_code_of_wait_is_the_runs(bench: Any, put: Any, states: Any, phase: str, code: int) -> None:
    bench.gryvia("workflows", "get", put(*states, phase=phase), "--wait", "-o", "json", code=code)


def test_earlier_runs_are_listed_shown_and_drawn(bench: Any, put: Any) -> None:
    name = put(TRAINED, more='schedule: "0 3 * * *"', phase="Scheduled", run=3, startTime="2026-01-03T03:00:00Z")
    owner = bench.get("GryviaWorkflow", name)
    for run, state in ((1, FAILED), (2, TRAINED)):
        status = GryviaWorkflowStatus.model_validate(
            {"phase": "Scheduled", "run": run, "stepsTotal": 4, "stepsCompleted": 4, "stepStatuses": [state]}
        )
        labels = {"gryvia.io/component": "workflow-run"}
        meta = owned_metadata(owner, WORKFLOW_KIND.resource, run_name(name, run), labels)
        bench.put(json.dumps({"kind": "ConfigMap", "metadata": meta, "data": {RUN_KEY: encode_run(status)}}))
    rows = [line.split() for line in bench.gryvia("workflows", "runs", name).splitlines()]
    assert rows[0][:4] == ["RUN", "PHASE", "STEPS", "FAILED"]
    assert [row[:3] for row in rows[1:]] == [
        ["3", "Succeeded", "1/4"],
        ["2", "Succeeded", "4/4"],
        ["1", "Failed", "4/4"],
    ]
    assert rows[3][3] == "train"
    assert [one["run"] for one in bench.json("workflows", "runs", name)] == [3, 2, 1]
    assert "[no such file]" in bench.gryvia("workflows", "get", name, "--run", "1")
    assert bench.gryvia("workflows", "graph", name, "--run", "1").startswith("✗   train")
    assert bench.json("workflows", "get", name, "--run", "3")["status"]["run"] == 3
    said = bench.gryvia("workflows", "get", name, "--run", "9", code=1)
    assert f"run 9 of workflow {name} is not kept; the newest is 3" in said


def test_a_workflow_without_runs(bench: Any, put: Any) -> None:
    name = put(more='schedule: "0 3 * * *"', phase="Scheduled")
    assert bench.gryvia("workflows", "runs", name) == f"Workflow {name} has not run yet.\n"


def test_retry_asks_once_more_each_time(bench: Any, put: Any) -> None:
    name = put(FAILED, phase="Failed")
    assert bench.gryvia("workflows", "retry", name) == f"workflow {name}: retrying train\n"
    first = bench.get("GryviaWorkflow", name)["metadata"]["annotations"]["gryvia.io/retry-failed"]
    assert first.startswith("cli at 20")
    bench.gryvia("workflows", "retry", name)
    assert bench.get("GryviaWorkflow", name)["metadata"]["annotations"]["gryvia.io/retry-failed"] != first


@pytest.mark.parametrize(
    ("states", "status", "sentence"),
    [
        (
            [step("train", "Running")],
            {"phase": "Running"},
            "is Running and has nothing to retry; only a run that failed",
        ),
        ([TRAINED], {"phase": "Succeeded"}, "is Succeeded and has nothing to retry"),
        ([TRAINED], {"phase": "Scheduled"}, "is Scheduled and has nothing to retry"),
        (
            [],
            {
                "phase": "Failed",
                "message": "steps[0].name: two steps are called a",
                "conditions": [
                    {
                        "type": "DAGValid",
                        "status": "False",
                        "reason": "Invalid",
                        "message": "",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            },
            "never ran, its spec is wrong: steps[0].name: two steps are called a; mend and apply it",
        ),
    ],
)
def test_what_cannot_be_retried_says_why(bench: Any, put: Any, states: Any, status: Any, sentence: str) -> None:
    assert sentence in bench.gryvia("workflows", "retry", put(*states, **status), code=1)


def test_the_step_that_waits_is_approved_in_the_name_the_server_knows(bench: Any, put: Any) -> None:
    name = put(TRAINED, step("ask", "Running"), approvers="[ann, admin]")
    assert bench.gryvia("workflows", "approve", name, "--comment", "looks good") == (
        f"workflow {name}: step ask Approved by admin\n"
    )
    annotations = bench.get("GryviaWorkflow", name)["metadata"]["annotations"]
    said = json.loads(annotations["gryvia.io/approval-ask"])
    assert said == {"decision": "Approved", "by": "admin", "comment": "looks good"}


def test_one_of_several_is_named_and_rejected(bench: Any, put: Any) -> None:
    name = put(TRAINED, step("ask", "Running"), step("also", "Running"))
    assert "several steps wait: ask, also; name one" in bench.gryvia("workflows", "approve", name, code=1)
    bench.gryvia("workflows", "reject", name, "also")
    annotations = bench.get("GryviaWorkflow", name)["metadata"]["annotations"]
    assert set(annotations) == {"gryvia.io/approval-also"}
    assert json.loads(annotations["gryvia.io/approval-also"]) == {"decision": "Rejected", "by": "admin"}


def test_an_answer_can_wait_until_it_is_asked_for(bench: Any, put: Any) -> None:
    name = put(FAILED, step("ask", "Skipped"), phase="Failed", resumedBy="once")
    assert "(Failed): no step waits" in bench.gryvia("workflows", "approve", name, "--when-asked", code=1)
    bench.gryvia("workflows", "retry", name)
    with bench.running("workflows", "approve", name, "ask", "--when-asked") as program:
        for states in ([TRAINED], [TRAINED, step("also", "Running")], [TRAINED, step("ask", "Running")]):
            assert program.poll() is None
            bench.status("GryviaWorkflow", name, {"phase": "Running", "stepStatuses": states})
        assert program.stdout.read() == f"workflow {name}: step ask Approved by admin\n"
        assert program.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "(Running): no step waits for approval"),
        (["train"], "is a script step, not an approval"),
        (["aks"], "has no step aks; its approval steps: ask, also"),
        (["also"], "is Pending; it does not wait for an answer"),
        (["ask"], "was Approved by ann; it does not wait for an answer"),
    ],
)
def test_what_does_not_wait_is_not_answered(bench: Any, put: Any, arguments: list[str], sentence: str) -> None:
    answered = {"decision": "Approved", "by": "ann", "at": "2026-01-01T00:00:00Z"}
    name = put(TRAINED, step("ask", "Succeeded", approval=answered))
    assert sentence in bench.gryvia("workflows", "approve", name, *arguments, code=1)


def test_who_is_not_among_the_approvers_hears_it_at_once(bench: Any, put: Any) -> None:
    name = put(TRAINED, step("ask", "Running"), approvers="[ann, ben]")
    said = bench.gryvia("workflows", "approve", name, code=1)
    assert said == "gryvia: you are admin; step ask is for ann, ben to answer\n"
    assert "annotations" not in bench.get("GryviaWorkflow", name)["metadata"]


def test_a_schedule_is_suspended_and_resumed(bench: Any, put: Any) -> None:
    name = put(more='schedule: "0 3 * * *"', phase="Scheduled")
    for _ in range(2):
        assert bench.gryvia("workflows", "suspend", name) == f"workflow {name} suspended\n"
    assert bench.get("GryviaWorkflow", name)["spec"]["suspend"] is True
    assert "0 3 * * * (suspended)" in bench.gryvia("workflows", "list")
    bench.gryvia("workflows", "resume", name)
    assert bench.get("GryviaWorkflow", name)["spec"]["suspend"] is False
    assert "has no schedule and runs once" in bench.gryvia("workflows", "suspend", put(), code=1)


@pytest.mark.parametrize("verb", ["get", "graph", "run", "stop", "retry", "approve", "reject", "suspend", "resume"])
def test_a_workflow_that_is_not_there_is_one_sentence(bench: Any, verb: str) -> None:
    said = bench.gryvia("workflows", verb, "nowhere", code=1)
    assert said == (
        "gryvia: workflow nowhere not found in namespace default; `gryvia list workflows -A` shows those there are\n"
    )


def annotations(bench: Any, name: str) -> dict[str, str]:
    return bench.get("GryviaWorkflow", name)["metadata"].get("annotations") or {}


INVALID = [
    {
        "type": "DAGValid",
        "status": "False",
        "reason": "Invalid",
        "message": "dependsOn: there is no step b",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
]


def test_a_run_is_stopped_in_the_name_the_server_knows(bench: Any, put: Any) -> None:
    name = put(step("train", "Running"))
    assert bench.gryvia("workflows", "stop", name) == f"workflow {name}: stopping\n"
    assert json.loads(annotations(bench, name)["gryvia.io/cancel"]) == {"by": "admin"}


def test_stop_waits_for_the_end_of_a_run_and_is_not_repeated(bench: Any, put: Any) -> None:
    name = put(step("train", "Running"))
    with bench.running("workflows", "stop", name, "--wait") as program:
        assert program.stdout.readline() == f"workflow {name}: stopping\n"
        bench.patch("GryviaWorkflow", name, {"metadata": {"annotations": {"gryvia.io/cancel": None}}})
        cancelled = {"by": "admin", "at": "2026-01-01T00:00:00Z"}
        state = {"message": "cancelled by admin", "cancelled": cancelled, "stepStatuses": [FAILED]}
        bench.status("GryviaWorkflow", name, {"phase": "Running", **state})
        bench.gryvia("workflows", "stop", name)
        assert annotations(bench, name) == {}
        bench.status("GryviaWorkflow", name, {"phase": "Failed", **state})
        assert program.stdout.read().splitlines()[-1] == f"{name}: Failed, 1 of 4 steps: cancelled by admin"
        assert program.wait(20) == 0


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Scheduled"])
def test_where_no_run_is_under_way_there_is_none_to_stop(bench: Any, put: Any, phase: str) -> None:
    name = put(TRAINED, phase=phase)
    assert f"is {phase}; there is no run to stop" in bench.gryvia("workflows", "stop", name, code=1)
    assert annotations(bench, name) == {}
    # One that is about to begin is.
    bench.gryvia("workflows", "run", name)
    bench.gryvia("workflows", "stop", name)
    assert set(annotations(bench, name)) == {"gryvia.io/run-requested", "gryvia.io/cancel"}
    # And who asks for a run after that means it.
    bench.gryvia("workflows", "run", name)
    assert set(annotations(bench, name)) == {"gryvia.io/run-requested"}


def test_a_run_is_asked_for(bench: Any, put: Any) -> None:
    name = put(TRAINED, phase="Succeeded")
    assert bench.gryvia("workflows", "run", name) == f"workflow {name}: run asked for\n"
    first = annotations(bench, name)["gryvia.io/run-requested"]
    bench.gryvia("workflows", "run", name)
    assert annotations(bench, name)["gryvia.io/run-requested"] != first
    under_way = put(TRAINED, startTime="2026-01-01T00:00:00Z")
    assert "begins when the one that is under way has ended" in bench.gryvia("workflows", "run", under_way)


def test_run_waits_for_the_run_that_was_asked_for_and_not_for_an_earlier_one(bench: Any, put: Any) -> None:
    name = put(TRAINED, phase="Succeeded", runRequested="earlier")
    with bench.running("workflows", "run", name, "--wait") as program:
        assert program.stdout.readline() == f"workflow {name}: run asked for\n"
        bench.status("GryviaWorkflow", name, {"phase": "Running", "stepStatuses": [step("train", "Running")]})
        assert program.stdout.readline().endswith("train: Running\n")
        wanted = annotations(bench, name)["gryvia.io/run-requested"]
        bench.status("GryviaWorkflow", name, {"phase": "Failed", "runRequested": wanted, "stepStatuses": [FAILED]})
        assert program.stdout.read().splitlines()[-1].startswith(f"{name}: Failed")
        assert program.wait(20) == 1


def test_a_spec_that_cannot_run_is_refused_at_once(bench: Any, put: Any) -> None:
    name = put(TRAINED, phase="Succeeded", conditions=INVALID)
    said = bench.gryvia("workflows", "run", name, code=1)
    assert "cannot run, its spec is wrong: dependsOn: there is no step b; mend and apply it" in said
    # Mended, and not judged anew yet.
    bench.status("GryviaWorkflow", name, {"observedGeneration": 0})
    bench.gryvia("workflows", "run", name)


def test_the_list_says_whose_answer_is_waited_for_and_what_an_edit_waits_for(bench: Any, put: Any) -> None:
    asked = step("ask", "Running", message="waits for an approval by anyone")
    pending = {**INVALID[0], "type": "SpecPending", "status": "True", "message": "the spec was changed"}
    one = put(TRAINED, asked, step("also", "Running"))
    other = put(TRAINED, phase="Succeeded", conditions=[pending])
    rows = {line.split()[0]: line for line in bench.gryvia("workflows", "list").splitlines()}
    assert rows[one].endswith("waiting for approval: step ask, also")
    assert rows[other].endswith("the spec was changed")


def test_an_answer_is_shown_once(bench: Any, put: Any) -> None:
    answered = {"decision": "Approved", "by": "ann", "at": "2026-01-01T00:00:00Z", "comment": "fine"}
    name = put(TRAINED, step("ask", "Succeeded", approval=answered, message="approved by ann: fine"))
    assert bench.gryvia("workflows", "get", name).lower().count("approved") == 1


def test_a_cancelled_run_of_a_schedule_has_not_succeeded(bench: Any, put: Any) -> None:
    cancelled = {"at": "2026-01-01T00:00:00Z"}
    name = put(TRAINED, phase="Scheduled", more='schedule: "0 3 * * *"', cancelled=cancelled, startTime=cancelled["at"])
    assert bench.gryvia("workflows", "runs", name).splitlines()[1].split()[1] == "Failed"
    bench.gryvia("workflows", "retry", name)
