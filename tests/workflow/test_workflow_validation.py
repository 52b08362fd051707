"""Every bad spec has a sentence that names step, field, value and fix; what has no effect is named in a condition."""

from __future__ import annotations

import pytest

SCRIPT = {"image": "python:3.11", "command": ["python"]}
JOB = {"type": "training", "gpus": 0, "image": "python:3.11"}
REGISTER = {"modelName": "m", "version": "1", "artifacts": {"pvcName": "p"}}
A = {"name": "a", "script": SCRIPT}


def args(text):
    return {**SCRIPT, "args": [text]}


@pytest.mark.parametrize(
    ("steps", "fields", "said"),
    [
        ([], {}, "spec.steps: 0 steps; a workflow has 1 to 100"),
        ([{**A, "name": f"s{n}"} for n in range(101)], {}, "spec.steps: 101 steps; a workflow has 1 to 100"),
        ([A, A], {}, 'spec.steps: the name "a" is used 2 times; each step needs its own'),
        ([{**A, "name": "Not_ok"}], {}, 'step "Not_ok": name is no DNS label; use a-z, 0-9'),
        ([{**A, "name": "x" * 64}], {}, "name is no DNS label"),
        ([A, {**A, "name": "a-r1"}], {}, 'step "a-r1": name: attempts of step "a" may have the same names'),
        ([A, {**A, "name": "a-i0-n3"}], {}, 'name: attempts of step "a" may have the same names'),
        ([{**A, "dependsOn": ["b"]}], {}, 'step "a": dependsOn: there is no step "b"; the steps are a'),
        ([{**A, "dependsOn": ["a"]}], {}, 'dependsOn: "a" is the step itself; remove it'),
        ([A, {**A, "name": "b", "dependsOn": ["a", "a"]}], {}, "dependsOn: a stands there twice; name each step once"),
        (
            [{**A, "dependsOn": ["c"]}, {**A, "name": "b", "dependsOn": ["a"]}, {**A, "name": "c", "dependsOn": ["b"]}],
            {},
            "the steps wait for each other: a -> c -> b -> a; remove one of these dependencies",
        ),
        (
            [{**A, "finally": True}, {**A, "name": "b", "dependsOn": ["a"]}],
            {},
            'step "b": dependsOn: "a" is a finally step and runs at the end; make this one a finally step too',
        ),
        (
            [{"name": "a", "script": None}],
            {},
            'step "a": nothing to do; set one of jobTemplate, script, webhook, register, registry, or type: approval',
        ),
        ([{**A, "jobTemplate": JOB}], {}, "jobTemplate and script are set; a step does one thing, remove all but one"),
        ([{**A, "type": "job"}], {}, "type job needs the block jobTemplate; set it"),
        ([{**A, "type": "approval"}], {}, "script does not fit the type approval; remove it, or set type script"),
        ([{"name": "a", "script": {**SCRIPT, "command": []}}], {}, "script.command: empty; say what to run"),
        (
            [{"name": "a", "jobTemplate": {"gpus": 0}}],
            {},
            "jobTemplate.image: missing; set the container image of the job",
        ),
        ([{"name": "a", "jobTemplate": {**JOB, "type": "inference"}}], {}, "jobTemplate.workloadKind: a statefulset"),
        ([{**A, "retries": 11}], {}, "retries: 11 must be 0 to 10"),
        ([{**A, "retryBackoffSeconds": -1}], {}, "retryBackoffSeconds: -1 must be 0 or more"),
        ([{**A, "timeoutSeconds": -5}], {}, "timeoutSeconds: -5 must be 0 (none) or more"),
        ([{"name": "a" * 55, "type": "approval"}], {}, "an approval step has at most 54 characters"),
        ([{"name": "a", "type": "approval", "withItems": [1]}], {}, "withItems: an approval step asks one question"),
        ([A], {"parameters": {"a b": "x"}}, 'spec.parameters: "a b" cannot name an environment variable'),
        (
            [{**A, "script": args("{{steps.b.outputs.x}}")}],
            {},
            '{{steps.b.outputs.x}}: there is no step "b"; the steps are a',
        ),
        (
            [A, {**A, "name": "b", "script": args("{{steps.a.outputs.x}}")}],
            {},
            '{{steps.a.outputs.x}}: step "a" need not have ended by then; add it to dependsOn',
        ),
        (
            [{**A, "script": args("{{steps.a.status}}")}],
            {},
            "{{steps.a.status}} is no placeholder; there are {{steps.<step>",
        ),
        ([{**A, "script": args("{{workflow.uid}}")}], {}, "{{workflow.uid}} is no placeholder"),
        (
            [{**A, "script": args("{{item}}")}],
            {},
            "{{item}}: the step has no withItems; set it, or remove the placeholder",
        ),
        (
            [{"name": "a", "withItems": [1, 2], "register": {**REGISTER, "name": "x"}}],
            {},
            'register.name: "x" is the same for all items; put {{item}} into it, or leave it out',
        ),
        ([{**A, "condition": "steps.b.status == 'Failed'"}], {}, 'there is no step "b"; the steps are a'),
        (
            [A, {**A, "name": "b", "condition": "steps.a.status == 'Failed'"}],
            {},
            """condition "steps.a.status == 'Failed'": step "a" need not have ended by then; add it to dependsOn""",
        ),
        (
            [A, {**A, "name": "b", "dependsOn": ["a"], "condition": "steps.a.status == 'Sucess'"}],
            {},
            '"Sucess" is no phase; a status is one of Pending, Running, Succeeded, Failed, Skipped',
        ),
        (
            [A, {**A, "name": "b", "dependsOn": ["a"], "condition": "steps.a.state == 'x'"}],
            {},
            "steps.a.state: a step has .status",
        ),
        ([{**A, "condition": "1 + 1"}], {}, 'condition "1 + 1": it gives int, not true or false'),
        ([{**A, "condition": "true &&"}], {}, "Syntax error"),
        ([{**A, "condition": "foo == 1"}], {}, "undeclared reference to 'foo'"),
        ([A], {"schedule": "61 * * * *"}, "61"),
        ([A], {"timeZone": "UTC"}, "spec.timeZone is about scheduled runs"),
    ],
)
def test_what_cannot_run_is_failed_with_what_to_change(workflow, steps, fields, said):
    cluster = workflow(*steps, **fields)
    assert cluster.phase == "Failed"
    assert said in cluster.message
    assert cluster.condition("DAGValid")["message"] == cluster.message
    assert cluster.writes == {"status": 1}
    assert [event.type for event in cluster.events] == ["gryvia.workflow.failed"]


def test_many_problems_are_said_at_once_and_counted(workflow):
    cluster = workflow(*({**A, "name": f"s{n}", "retries": -1} for n in range(8)))
    assert cluster.message.count("must be 0 to 10") == 5
    assert cluster.message.endswith("and 3 more")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({**A, "retryBackoffSeconds": 5}, "step a: retryBackoffSeconds: retries is 0, so no attempt follows another"),
        ({**A, "retries": 1, "retryBackoffFactor": 2}, "retryBackoffSeconds is 0, so there is no wait"),
        ({"name": "a", "register": REGISTER, "timeoutSeconds": 5}, "timeoutSeconds: a register step is one request"),
        (
            {**A, "approvers": ["ann"]},
            "approvers: the step is of type script, only an approval step waits for a person",
        ),
        ({"name": "a", "type": "approval", "retries": 2}, "retries: an approval is asked for once"),
        (
            {**A, "script": args("{{model.id}} {{ .Values.x }}")},
            "{{model.id}} is no placeholder of a workflow and stays as it is",
        ),
        (
            {"name": "a", "jobTemplate": {**JOB, "env": [{"name": "P", "value": "1"}]}},
            "jobTemplate.env P: the workflow sets it",
        ),
    ],
)
def test_what_has_no_effect_is_named(workflow, step, said):
    cluster = workflow(step, parameters={"P": "2"})
    assert cluster.phase in ("Running", "Succeeded")
    assert said in cluster.condition("FieldsIgnored")["message"]


def test_transitive_dependencies_may_be_named(workflow):
    cluster = workflow(
        A,
        {**A, "name": "b", "dependsOn": ["a"]},
        {
            **A,
            "name": "c",
            "dependsOn": ["b"],
            "condition": "steps.a.status == 'Succeeded'",
            "script": args("{{steps.a.outputs.x}}"),
        },
    )
    cluster.finish("wf-a", {"x": "1"})
    cluster.finish("wf-b")
    assert cluster.child("wf-c")["spec"]["containers"][0]["args"] == ["1"]


def test_long_names_are_shortened_without_meeting(workflow):
    names = ["x" * 60 + "-a", "x" * 60 + "-b"]
    cluster = workflow(*({**A, "name": name} for name in names), name="w" * 60)
    assert len(set(cluster.running)) == 2
    assert all(len(name) <= 63 for name in cluster.running)
