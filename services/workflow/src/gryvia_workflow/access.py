"""What the workflow service may do, beside what follows from its controller. Small on purpose: who asks only what a service may say
on the bus must not load the service.
"""

from __future__ import annotations

from gryvia_common.bus.permissions import service_permissions
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.resources import CONFIG_MAPS, PODS
from gryvia_common.runtime.access import Access, Writes, controller_rules

PERMISSIONS = service_permissions("workflow", emits=("workflow",))
WRITES: Writes = {
    WORKFLOW.resource: ("patch",),
    AI_JOB.resource: ("create", "delete"),
    PODS: ("create", "delete"),
    CONFIG_MAPS: ("create", "delete"),
    MODEL_REGISTRY.resource: ("create", "patch"),
}


def access() -> Access:
    from gryvia_workflow.controller import controller
    from gryvia_workflow.settings import WorkflowSettings

    return Access("workflow", controller_rules((controller(WorkflowSettings()),), WRITES), PERMISSIONS)
