"""A registry step: a change of an entry that is there, named itself or by the service that serves it.

The entry is a ref only once the status says that the step runs, so the pass that starts it need not see it (it does where a register
step has just made it). A rollback leaves its mark beside the request: the registry takes the request away when it has acted, and a
pass repeated after a crash must not ask for a second one.
"""

from __future__ import annotations

from dataclasses import replace

from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json, annotations_of, uid_of
from gryvia_common.kube.resources import GROUP, Resource
from gryvia_common.runtime.differences import covers
from gryvia_common.runtime.plan import Patch
from gryvia_workflow.attempts import Attempt, End, Progress, refused

ROLLBACK = f"{GROUP}/rollback-requested"
MARK = f"{GROUP}/rollback-requested-by"


def advance(attempt: Attempt) -> Progress:
    payload = attempt.payload()
    asked = str(payload.get("serviceName") or payload.get("entry") or "")
    namespace, name = attempt.workflow.namespace, asked
    if payload.get("serviceName"):
        service = attempt.world.get(INFERENCE_SERVICE.resource, namespace, asked)
        if service is None:
            said = f'registry.serviceName: there is no GryviaInferenceService "{asked}"'
            return _unseen(attempt, asked, INFERENCE_SERVICE.resource, asked, said)
        name = str((service.get("spec") or {}).get("modelRef") or "")
    entry = attempt.world.get(MODEL_REGISTRY.resource, namespace, name)
    if entry is None:
        said = f'registry.entry: there is no GryviaModelRegistry "{name}"'
        return _unseen(attempt, asked, MODEL_REGISTRY.resource, name, said)
    body = _change(attempt, payload, entry)
    refusal = attempt.world.refusal(MODEL_REGISTRY.resource, name)
    if refusal is not None and refusal.sent == body:
        return Progress(refused(refusal), child=asked)
    patch = (Patch(MODEL_REGISTRY.resource, namespace, name, body, uid_of(entry)),) if body else ()
    return Progress(End("succeeded", outputs={"name": name}, child=name), child=asked, patch=patch)


def _unseen(attempt: Attempt, asked: str, resource: Resource, name: str, said: str) -> Progress:
    """It is not there, if the API server says so, and if this is not the pass that starts the step: then nobody has looked yet."""
    if not attempt.begun:
        return Progress(child=asked)
    question = attempt.unseen(resource, name) if name else None
    return replace(question, child=asked) if question else Progress(End("failed", said), child=asked)


def _change(attempt: Attempt, payload: Json, entry: Json) -> Json:
    """What is to be changed of the entry; nothing when it is so."""
    if payload.get("action") == "rollback":
        mark = f"{attempt.workflow.uid}/{attempt.child}"
        if annotations_of(entry).get(MARK) == mark:
            return {}
        return {"metadata": {"annotations": {ROLLBACK: "true", MARK: mark}}}
    body = {"spec": {"metadata": payload.get("metadata") or {}}}
    return {} if covers(entry, body) else body
