"""The StatefulSet controller: one ordinal after another, or all at once; rolling update from the highest down.

Source of the order: k8s.io/kubernetes pkg/controller/statefulset/stateful_set_control.go. With OrderedReady nothing is made or
taken away while a lower pod is not running and ready; that includes its well-known consequence that a broken template
has to be mended by deleting the broken pod.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Again, Create, Emit, Remove, Replace
from gryvia_devcluster.controllers.podstate import available_at, is_deleting, is_finished, is_ready, phase
from gryvia_devcluster.controllers.statefulset.identity import (
    claim_names,
    new_claims,
    new_pod,
    new_revision,
    ordinal_of,
    revision_of,
    update_revision,
)
from gryvia_devcluster.types import Json


@dataclass(frozen=True, slots=True)
class View:
    """The set and what belongs to it, sorted out."""

    sts: Json
    pods: dict[int, Json]
    claims: dict[str, Json]
    revisions: dict[str, Json]
    now: datetime

    @property
    def wanted(self) -> range:
        start = int(self.sts["spec"].get("ordinals", {}).get("start", 0))
        return range(start, start + int(self.sts["spec"].get("replicas", 1)))

    @property
    def ordered(self) -> bool:
        return bool(self.sts["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady")

    def is_available(self, pod: Json) -> bool:
        at = available_at(pod, int(self.sts["spec"].get("minReadySeconds", 0)))
        return phase(pod) == "Running" and not is_deleting(pod) and at is not None and at <= self.now


def sync_statefulset(sts: Json, related: Sequence[Json], now: datetime) -> list[Action]:
    view = _view(sts, related, now)
    actions: list[Action] = []
    if not is_deleting(sts):
        actions += _revise(view)
        actions += _step(view)
    status = _status(view)
    if status != sts.get("status", {}):
        actions.insert(0, Replace({**sts, "status": status}, "status"))
    waiting = [at for pod in view.pods.values() if (at := available_at(pod, sts["spec"].get("minReadySeconds", 0)))]
    return [*actions, *(Again(at) for at in waiting if at > now)]


def _view(sts: Json, related: Sequence[Json], now: datetime) -> View:
    pods = {o: obj for obj in related if obj["kind"] == "Pod" and (o := ordinal_of(sts, obj)) is not None}
    claims = {obj["metadata"]["name"]: obj for obj in related if obj["kind"] == "PersistentVolumeClaim"}
    revisions = {obj["metadata"]["name"]: obj for obj in related if obj["kind"] == "ControllerRevision"}
    return View(sts, pods, claims, revisions, now)


def _revise(view: View) -> list[Action]:
    name = update_revision(view.sts)
    highest = max((int(r["revision"]) for r in view.revisions.values()), default=0)
    if name not in view.revisions:
        return [Create(new_revision(view.sts, highest + 1))]
    if int(view.revisions[name]["revision"]) < highest:
        return [Replace({**view.revisions[name], "revision": highest + 1})]
    limit = int(view.sts["spec"].get("revisionHistoryLimit", 10))
    live = {name, _current(view), *(revision_of(pod) for pod in view.pods.values())}
    unused = sorted((r for n, r in view.revisions.items() if n not in live), key=lambda r: int(r["revision"]))
    return [Remove(revision) for revision in unused[: max(len(unused) - limit, 0)]]


def _current(view: View) -> str:
    return str(view.sts.get("status", {}).get("currentRevision") or update_revision(view.sts))


def _step(view: View) -> list[Action]:
    """Fill up, then take away, then update; with OrderedReady only as far as the first pod that is not well."""
    actions: list[Action] = []
    for ordinal in view.wanted:
        pod = view.pods.get(ordinal)
        if pod is None:
            actions += _make(view, ordinal)
        elif is_finished(pod) and not is_deleting(pod):
            name = pod["metadata"]["name"]
            reason = f"StatefulSet {view.sts['metadata']['name']} is recreating failed Pod {name}"
            actions += [Emit(view.sts, "RecreatingFailedPod", reason, "Warning"), Remove(pod, about=view.sts)]
        elif view.is_available(pod):
            continue
        if view.ordered:
            return actions
    condemned = sorted((o for o in view.pods if o not in view.wanted), reverse=True)
    for ordinal in condemned:
        if not is_deleting(view.pods[ordinal]):
            actions += [Remove(view.pods[ordinal], about=view.sts), *_drop_claims(view, ordinal)]
        if view.ordered:
            return actions
    return actions or _update(view)


def _make(view: View, ordinal: int) -> list[Action]:
    claims: list[Action] = [Create(claim, about=view.sts) for claim in new_claims(view.sts, ordinal, set(view.claims))]
    revision, template = update_revision(view.sts), view.sts["spec"]["template"]
    current = view.revisions.get(_current(view))
    if current is not None and ordinal < view.wanted.start + _partition(view):
        revision, template = current["metadata"]["name"], current["data"]["spec"]["template"]
    return [*claims, Create(new_pod(view.sts, ordinal, revision, template), about=view.sts)]


def _partition(view: View) -> int:
    return int((view.sts["spec"].get("updateStrategy", {}).get("rollingUpdate") or {}).get("partition", 0))


def _drop_claims(view: View, ordinal: int) -> list[Action]:
    """Claims stay when a set shrinks, unless whenScaled is Delete; then they go with the pod that used them."""
    policy = view.sts["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenScaled") != "Delete":
        return []
    names = [name for name in claim_names(view.sts, ordinal) if name in view.claims]
    return [Remove(view.claims[name]) for name in names if not is_deleting(view.claims[name])]


def _update(view: View) -> list[Action]:
    if view.sts["spec"].get("updateStrategy", {}).get("type", "RollingUpdate") != "RollingUpdate":
        return []
    wanted = update_revision(view.sts)
    for ordinal in reversed(view.wanted):
        if ordinal < view.wanted.start + _partition(view):
            break
        pod = view.pods[ordinal]
        if revision_of(pod) != wanted and not is_deleting(pod):
            return [Remove(pod, about=view.sts)]
        if not view.is_available(pod):
            break
    return []


def _status(view: View) -> Json:
    pods = list(view.pods.values())
    update, current = update_revision(view.sts), _current(view)
    living = [pod for pod in pods if not is_deleting(pod)]
    updated = sum(revision_of(pod) == update for pod in living)
    ready = sum(phase(pod) == "Running" and is_ready(pod) for pod in pods)
    if updated == len(pods) == len(view.wanted) == ready:
        current = update
    return {
        "observedGeneration": view.sts["metadata"].get("generation", 1),
        "replicas": len(pods),
        "readyReplicas": ready,
        "availableReplicas": sum(view.is_available(pod) for pod in pods),
        "currentReplicas": sum(revision_of(pod) == current for pod in living),
        "updatedReplicas": updated,
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": view.sts.get("status", {}).get("collisionCount", 0),
    }
