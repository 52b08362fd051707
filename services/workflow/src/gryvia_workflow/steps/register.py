"""A register step: a GryviaModelRegistry that belongs to nobody and outlives the workflow.

An entry of the name that is there already is taken for ours only when it names this workflow and carries this run's label: that
is what a crash after the creation leaves behind.
"""

from __future__ import annotations

from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.names import is_dns_label
from gryvia_common.kube.objects import Json, labels_of
from gryvia_common.kube.resources import GROUP
from gryvia_common.runtime.plan import Apply
from gryvia_workflow.attempts import Attempt, End, Progress, refused

_LINEAGE = {"base_model": f"{GROUP}/source-model", "base_revision": f"{GROUP}/source-revision"}
_COPIED = (
    "modelName",
    "version",
    "artifacts",
    "description",
    "autoServe",
    "servingConfig",
    "promotionPolicy",
    "rollbackPolicy",
)


def advance(attempt: Attempt) -> Progress:
    payload = attempt.payload()
    name = attempt.task.child if attempt.begun else str(payload.get("name") or attempt.child)
    if not is_dns_label(name):
        return Progress(
            End("failed", f'register.name: "{name[:80]}" cannot name an entry; use a-z, 0-9 and -, 63 at most')
        )
    refusal = attempt.world.refusal(MODEL_REGISTRY.resource, name)
    if refusal is not None:
        return Progress(refused(refusal), child=name)
    entry = attempt.world.get(MODEL_REGISTRY.resource, attempt.workflow.namespace, name)
    if entry is None:
        manifest = _manifest(attempt, name, payload)
        return Progress(child=name, apply=(Apply(MODEL_REGISTRY.resource, manifest, create_only=True, owned=False),))
    source = ((entry.get("spec") or {}).get("source") or {}).get("workflowRef")
    if source != attempt.workflow.name or labels_of(entry).get(f"{GROUP}/run") != str(attempt.run):
        said = f"entry {name} exists already and is not of this run; set register.name to another name, or delete it"
        return Progress(End("failed", said, final=True), child=name)
    return Progress(End("succeeded", outputs={"name": name}), child=name)


def _manifest(attempt: Attempt, name: str, payload: Json) -> Json:
    annotations = attempt.workflow.annotations
    lineage = {key: annotations[source] for key, source in _LINEAGE.items() if annotations.get(source)}
    metadata = {**lineage, **(payload.get("metadata") or {})}
    return {
        "apiVersion": MODEL_REGISTRY.resource.api_version,
        "kind": MODEL_REGISTRY.name,
        "metadata": {
            "name": name,
            "namespace": attempt.workflow.namespace,
            "labels": attempt.labels("workflow-register"),
        },
        "spec": {
            **{key: payload[key] for key in _COPIED if payload.get(key) is not None},
            "stage": payload.get("stage") or "staging",
            "source": {"workflowRef": attempt.workflow.name},
            **({"metadata": metadata} if metadata else {}),
        },
    }
