"""What the bridge watches: one entry a resource type.

Gryvia's own kinds whole; of everybody's types only what carries the label of a Gryvia child; of Secrets only the
metadata, so that no secret ever gets on the bus. A type joins the list when a service needs it: each one costs the API
server a watch.
"""

from __future__ import annotations

from dataclasses import dataclass

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import MANAGED_BY, MANAGER
from gryvia_common.kube.resources import CONFIG_MAPS, JOBS, PODS, PVCS, SECRETS, SERVICES, STATEFUL_SETS, Resource

CHILD_LABELS = f"{MANAGED_BY}={MANAGER}"


@dataclass(frozen=True, slots=True)
class Watched:
    """`labels` is a label selector, empty for all objects of the type."""

    resource: Resource
    labels: str = ""
    metadata_only: bool = False

    @property
    def plural(self) -> str:
        return self.resource.plural


def children_of_type(resource: Resource) -> Watched:
    return Watched(resource, CHILD_LABELS, metadata_only=resource == SECRETS)


WATCHED: tuple[Watched, ...] = (
    *(Watched(kind.resource) for kind in (AI_JOB, AUTO_TUNER, WORKFLOW, MODEL_REGISTRY, INFERENCE_SERVICE)),
    *(children_of_type(resource) for resource in (JOBS, PODS, SERVICES, PVCS, STATEFUL_SETS, CONFIG_MAPS)),
)
