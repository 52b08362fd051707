"""Long outputs: a hundred steps with all that the contract allows stay small in the status, and nothing of them is lost."""

from __future__ import annotations

import json

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_workflow.settings import WorkflowSettings

JOB = {"type": "training", "gpus": 0, "image": "python:3.11"}
LIMIT = 200_000


def test_a_hundred_steps_with_full_outputs_keep_the_object_small_and_lose_nothing(workflow):
    full = {f"key-{n:02}": (f"{n}é" * 4096)[:2048] + "y" * 1000 for n in range(32)}
    assert max(len(value.encode()) for value in full.values()) <= 4096
    steps = [{"name": f"step-with-a-rather-long-name-{n:03}", "jobTemplate": JOB} for n in range(99)]
    last = {
        "name": "reads",
        "dependsOn": [step["name"] for step in steps],
        "condition": "steps.all(name, size(steps[name].outputs) == 32)"
        " && size(steps.step-with-a-rather-long-name-042.outputs.key-07) > 3000",
        "script": {"image": "i", "command": ["c"], "args": ["{{steps." + steps[98]["name"] + ".outputs.key-31}}"]},
    }
    cluster = workflow(*steps, last, settings=WorkflowSettings(workflow_max_parallel_steps=100))
    annotations = {f"gryvia.io/output-{key}": value for key, value in full.items()}
    for number, step in enumerate(steps):
        cluster.job(f"wf-{step['name']}", "Succeeded", annotations)
        if number % 20 == 0:
            cluster.settle()
    cluster.settle()
    assert cluster.running == ["wf-reads"]
    assert cluster.child("wf-reads")["spec"]["containers"][0]["args"] == [full["key-31"]]
    assert len(json.dumps(cluster.status)) < LIMIT
    for step in steps:
        kept = cluster.objects[CONFIG_MAPS, cluster.steps[step["name"]]["outputsIn"]]
        assert kept["data"] == full
        shown = cluster.steps[step["name"]]["outputs"]
        assert all(full[key].startswith(value.removesuffix("…")) for key, value in shown.items())


def test_as_many_items_as_there_may_be_keep_the_object_small(workflow):
    cluster = workflow(
        {"name": "each-of-a-great-many", "withItems": list(range(400)), "jobTemplate": JOB},
        {
            "name": "reads",
            "dependsOn": ["each-of-a-great-many"],
            "script": {"image": "i", "command": ["{{steps.each-of-a-great-many.outputs.x}}"]},
        },
        settings=WorkflowSettings(workflow_max_parallel_steps=400),
    )
    for number in range(400):
        cluster.job(f"wf-each-of-a-great-many-i{number}", "Succeeded", {"gryvia.io/output-x": f"{number}" * 100})
    cluster.settle()
    assert len(json.dumps(cluster.status)) < LIMIT
    read = json.loads(cluster.child("wf-reads")["spec"]["containers"][0]["command"][0])
    assert read == [f"{number}" * 100 for number in range(400)]


def test_long_messages_do_not_fill_the_status(workflow):
    steps = [{"name": f"s{n}", "jobTemplate": JOB} for n in range(100)]
    cluster = workflow(*steps, settings=WorkflowSettings(workflow_max_parallel_steps=100))
    for n in range(100):
        cluster.job(f"wf-s{n}", "Failed", message="ü" * 5000)
    cluster.settle()
    assert cluster.phase == "Failed"
    assert len(json.dumps(cluster.status, ensure_ascii=False).encode()) < LIMIT
    assert cluster.names(AI_JOB.resource)
