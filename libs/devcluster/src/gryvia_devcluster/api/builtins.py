"""The built-in resource types that are served, as one table.

A type is here because a service, a controller, kubectl or a Helm chart of an ordinary application asks for it. Types with
no behaviour in a single-machine cluster (RBAC, network policies, ingresses) are stored and listed only.
"""

from __future__ import annotations

from dataclasses import dataclass

from gryvia_devcluster.types import ResourceType

_STATUS = frozenset({"status"})
_SCALED = frozenset({"status", "scale"})
_REPLICAS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
NAMESPACES = "namespaces"
PODS = "pods"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    version: str


CORE = Group("", "v1")
APPS = Group("apps", "v1")
BATCH = Group("batch", "v1")
RBAC = Group("rbac.authorization.k8s.io", "v1")
NETWORKING = Group("networking.k8s.io", "v1")
EXTENSIONS = Group("apiextensions.k8s.io", "v1")


def _type(
    group: Group,
    plural: str,
    kind: str,
    short: str = "",
    *,
    namespaced: bool = True,
    subresources: frozenset[str] = frozenset(),
    all_category: bool = False,
) -> ResourceType:
    return ResourceType(
        group=group.name,
        version=group.version,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        singular=kind.lower(),
        short_names=tuple(short.split()),
        categories=("all",) if all_category else (),
        subresources=subresources,
        scale=_REPLICAS if "scale" in subresources else None,
    )


BUILTINS: tuple[ResourceType, ...] = (
    _type(CORE, "namespaces", "Namespace", "ns", namespaced=False, subresources=_STATUS),
    _type(CORE, "nodes", "Node", "no", namespaced=False, subresources=_STATUS),
    _type(CORE, "persistentvolumes", "PersistentVolume", "pv", namespaced=False, subresources=_STATUS),
    _type(CORE, "pods", "Pod", "po", subresources=_STATUS, all_category=True),
    _type(CORE, "services", "Service", "svc", subresources=_STATUS, all_category=True),
    _type(CORE, "endpoints", "Endpoints", "ep"),
    _type(CORE, "configmaps", "ConfigMap", "cm"),
    _type(CORE, "secrets", "Secret"),
    _type(CORE, "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", subresources=_STATUS),
    _type(CORE, "serviceaccounts", "ServiceAccount", "sa"),
    _type(CORE, "events", "Event", "ev"),
    _type(CORE, "resourcequotas", "ResourceQuota", "quota", subresources=_STATUS),
    _type(CORE, "limitranges", "LimitRange", "limits"),
    _type(APPS, "deployments", "Deployment", "deploy", subresources=_SCALED, all_category=True),
    _type(APPS, "replicasets", "ReplicaSet", "rs", subresources=_SCALED, all_category=True),
    _type(APPS, "statefulsets", "StatefulSet", "sts", subresources=_SCALED, all_category=True),
    _type(APPS, "daemonsets", "DaemonSet", "ds", subresources=_STATUS, all_category=True),
    _type(APPS, "controllerrevisions", "ControllerRevision"),
    _type(BATCH, "jobs", "Job", subresources=_STATUS, all_category=True),
    _type(BATCH, "cronjobs", "CronJob", "cj", subresources=_STATUS, all_category=True),
    _type(
        Group("autoscaling", "v2"),
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "hpa",
        subresources=_STATUS,
        all_category=True,
    ),
    _type(Group("coordination.k8s.io", "v1"), "leases", "Lease"),
    _type(Group("discovery.k8s.io", "v1"), "endpointslices", "EndpointSlice"),
    _type(NETWORKING, "networkpolicies", "NetworkPolicy", "netpol"),
    _type(NETWORKING, "ingresses", "Ingress", "ing", subresources=_STATUS),
    _type(NETWORKING, "ingressclasses", "IngressClass", namespaced=False),
    _type(Group("policy", "v1"), "poddisruptionbudgets", "PodDisruptionBudget", "pdb", subresources=_STATUS),
    _type(RBAC, "roles", "Role"),
    _type(RBAC, "rolebindings", "RoleBinding"),
    _type(RBAC, "clusterroles", "ClusterRole", namespaced=False),
    _type(RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    _type(Group("storage.k8s.io", "v1"), "storageclasses", "StorageClass", "sc", namespaced=False),
    _type(Group("scheduling.k8s.io", "v1"), "priorityclasses", "PriorityClass", "pc", namespaced=False),
    _type(
        EXTENSIONS, "customresourcedefinitions", "CustomResourceDefinition", "crd crds", namespaced=False,
        subresources=_STATUS,
    ),
)  # fmt: skip

# Kinds whose metadata.generation the real server keeps.
GENERATIONS = frozenset(
    {
        PODS,
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "networkpolicies.networking.k8s.io",
        "ingresses.networking.k8s.io",
        "ingressclasses.networking.k8s.io",
        "poddisruptionbudgets.policy",
        CRDS,
    }
)

# Field selectors beyond metadata.name and metadata.namespace.
SELECTABLE: dict[str, frozenset[str]] = {
    PODS: frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    "events": frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    "secrets": frozenset({"type"}),
    "nodes": frozenset({"spec.unschedulable"}),
    NAMESPACES: frozenset({"status.phase"}),
    "services": frozenset({"spec.clusterIP", "spec.type"}),
    "jobs.batch": frozenset({"status.successful"}),
    "replicasets.apps": frozenset({"status.replicas"}),
}
