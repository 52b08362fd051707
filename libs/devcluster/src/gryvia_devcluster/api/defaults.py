"""Defaults of the built-in kinds, by group resource.

Only what a user or a controller can see a difference of. A default function changes the object in place and runs on every
write, as in the real server; `default_new` runs at creation only (what a strategy's PrepareForCreate does there).
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from gryvia_devcluster.api.builtins import CRDS, NAMESPACES, PODS
from gryvia_devcluster.api.pod_admission import admit_pod
from gryvia_devcluster.api.pod_defaults import default_pod_spec, qos_class
from gryvia_devcluster.types import Json, ResourceType

Defaulter = Callable[[Json], None]


def _fill(target: Json, **values: object) -> None:
    for key, value in values.items():
        target.setdefault(key, value)


def _template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    if "spec" in template:
        default_pod_spec(template["spec"])


def _pod(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    default_pod_spec(spec)
    _fill(spec, enableServiceLinks=True)
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    # Times that Go always writes, also when there is none.
    for condition in (obj.get("status") or {}).get("conditions") or []:
        _fill(condition, lastProbeTime=None, lastTransitionTime=None)


def _deployment(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxSurge="25%", maxUnavailable="25%")


def _replicaset(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, replicas=1)


def _statefulset(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, replicas=1, podManagementPolicy="OrderedReady", revisionHistoryLimit=10, serviceName="")
    _fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), partition=0)
    for claim in spec.get("volumeClaimTemplates") or []:
        _fill(claim, apiVersion="v1", kind="PersistentVolumeClaim", status={"phase": "Pending"})
        _fill(claim.setdefault("spec", {}), volumeMode="Filesystem")


def _daemonset(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _template(spec)
    _fill(spec, revisionHistoryLimit=10)


def _job_spec(spec: Json) -> None:
    _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    _fill(spec, parallelism=1, completionMode="NonIndexed", suspend=False)
    _fill(spec, backoffLimit=6 if "backoffLimitPerIndex" not in spec else 2147483647)
    _fill(spec, podReplacementPolicy="Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or []:
        for pattern in rule.get("onPodConditions") or []:
            pattern.setdefault("status", "True")


def _job(obj: Json) -> None:
    _job_spec(obj.setdefault("spec", {}))


def _new_job(obj: Json) -> None:
    """The selector that the server makes up from the Job's uid, and the labels its pods get for it."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    labels["batch.kubernetes.io/controller-uid"] = labels["controller-uid"] = meta["uid"]
    labels["batch.kubernetes.io/job-name"] = labels["job-name"] = meta["name"]
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}})


def _cronjob(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    template = spec.setdefault("jobTemplate", {})
    _template(template.setdefault("spec", {}))


def _service(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    _fill(spec, type="ClusterIP", sessionAffinity="None")
    if spec["type"] != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster", ipFamilyPolicy="SingleStack", ipFamilies=["IPv4"])
    for port in spec.get("ports") or []:
        port.setdefault("protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    obj.setdefault("status", {"loadBalancer": {}})


def _secret(obj: Json) -> None:
    _fill(obj, type="Opaque")
    for key, text in (obj.pop("stringData", None) or {}).items():
        obj.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _claim(obj: Json) -> None:
    _fill(obj.setdefault("spec", {}), volumeMode="Filesystem")


def _volume(obj: Json) -> None:
    _fill(obj.setdefault("spec", {}), volumeMode="Filesystem", persistentVolumeReclaimPolicy="Retain")


def _namespace(obj: Json) -> None:
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _autoscaler(obj: Json) -> None:
    _fill(obj.setdefault("spec", {}), minReplicas=1)


def _storage_class(obj: Json) -> None:
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _priority_class(obj: Json) -> None:
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _crd(obj: Json) -> None:
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    if names.get("kind"):
        _fill(names, singular=names["kind"].lower(), listKind=f"{names['kind']}List")
    _fill(spec.setdefault("conversion", {}), strategy="None")


_DEFAULTS: dict[str, Defaulter] = {
    PODS: _pod,
    "deployments.apps": _deployment,
    "replicasets.apps": _replicaset,
    "statefulsets.apps": _statefulset,
    "daemonsets.apps": _daemonset,
    "jobs.batch": _job,
    "cronjobs.batch": _cronjob,
    "services": _service,
    "secrets": _secret,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    NAMESPACES: _namespace,
    "horizontalpodautoscalers.autoscaling": _autoscaler,
    "storageclasses.storage.k8s.io": _storage_class,
    "priorityclasses.scheduling.k8s.io": _priority_class,
    CRDS: _crd,
}


def default(rt: ResourceType, obj: Json) -> None:
    if defaulter := _DEFAULTS.get(rt.group_resource):
        defaulter(obj)


def default_new(rt: ResourceType, obj: Json, now: str) -> None:
    """What creation adds for nobody in particular: the first status, what is made of the name or the uid, admission."""
    match rt.group_resource:
        case "pods":
            obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
            admit_pod(obj, now)
        case "namespaces":
            obj["spec"] = {"finalizers": ["kubernetes"]}
            obj["status"] = {"phase": "Active"}
        case "persistentvolumeclaims" | "persistentvolumes":
            obj["status"] = {"phase": "Pending"}
        case "services":
            obj["status"] = {"loadBalancer": {}}
        case "jobs.batch":
            _new_job(obj)
            obj["status"] = {}
        case _ if "status" in rt.subresources:
            obj.setdefault("status", {})
