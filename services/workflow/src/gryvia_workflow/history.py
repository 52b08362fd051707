"""Earlier runs of a schedule: each one's last status in a ConfigMap, and what they left behind, for a bounded number of runs.

The status of a run moves into its ConfigMap in the pass that begins the next one, so every run is in exactly one place. In the same
pass goes what belongs to runs that are older than RUNS: jobs, pods, outputs, and their ConfigMaps. Registry entries stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.runs import RUN_KEY, encode_run, run_name
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import is_deleting, key_of, labels_of, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS, GROUP, PODS
from gryvia_common.runtime.plan import Apply, Delete
from gryvia_common.runtime.world import World
from gryvia_workflow.run import Workflow

RUNS = 10
RUN_LABEL = f"{GROUP}/run"


def filed(workflow: Workflow) -> Apply:
    """The ConfigMap of the run that the status is about."""
    run = workflow.status.run or 0
    labels = {f"{GROUP}/component": "workflow-run", RUN_LABEL: str(run)}
    meta = owned_metadata(workflow.raw, WORKFLOW.resource, run_name(workflow.name, run), labels)
    data = {RUN_KEY: encode_run(workflow.status)}
    return Apply(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, create_only=True
    )


def outdated(workflow: Workflow, world: World, run: int) -> Iterator[Delete]:
    """What is left of runs that are too old when `run` begins."""
    for resource in (AI_JOB.resource, PODS, CONFIG_MAPS):
        for child in world.children(resource):
            number = labels_of(child).get(RUN_LABEL, "")
            if number.isdigit() and int(number) < run - RUNS and not is_deleting(child):
                yield Delete(resource, workflow.namespace, key_of(child).name, uid_of(child))
