"""The columns of the built-in kinds, as the real server's printers have them.

A column is a title and a function of the object and the time. `wide` columns show under `-o wide`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gryvia_devcluster.api import pod_columns as pods
from gryvia_devcluster.api.durations import age, human
from gryvia_devcluster.clock import parse
from gryvia_devcluster.types import Json

Cell = Callable[[Json, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def _at(obj: Json, path: str, missing: Any = None) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return missing if value is None else value


def _field(title: str, path: str, missing: Any = "", *, type: str = "string", wide: bool = False) -> Column:
    return Column(title, lambda obj, now: _at(obj, path, missing), type, wide)


def _reference(title: str, path: str) -> Column:
    return Column(title, lambda obj, now: f"{_at(obj, path + '.kind', '')}/{_at(obj, path + '.name', '')}")


def _age(obj: Json, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


AGE = Column("Age", _age)
CREATED = Column("Created At", lambda obj, now: obj["metadata"]["creationTimestamp"], "date")


def _labels(selector: Any) -> str:
    labels = selector.get("matchLabels", {} if "matchExpressions" in selector else selector) if selector else {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _selector(path: str) -> Column:
    return Column("Selector", lambda obj, now: _labels(_at(obj, path)), wide=True)


def _containers(path: str) -> tuple[Column, Column]:
    def listed(field: str) -> Cell:
        return lambda obj, now: ",".join(item.get(field, "") for item in _at(obj, path + ".containers", []))

    return Column("Containers", listed("name"), wide=True), Column("Images", listed("image"), wide=True)


def _of(done: str, wanted: str, default: int = 0) -> Cell:
    return lambda obj, now: f"{_at(obj, done, 0)}/{_at(obj, wanted, default)}"


def _job_status(obj: Json, now: datetime) -> str:
    conditions = {c["type"] for c in _at(obj, "status.conditions", []) if c.get("status") == "True"}
    if "Complete" in conditions:
        return "Complete"
    if "Failed" in conditions:
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in conditions:
            return kind
    return "Running"


def _job_completions(obj: Json, now: datetime) -> str:
    completions, parallelism = _at(obj, "spec.completions"), _at(obj, "spec.parallelism", 0)
    done = _at(obj, "status.succeeded", 0)
    if completions is not None:
        return f"{done}/{completions}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(obj: Json, now: datetime) -> str:
    start, end = _at(obj, "status.startTime"), _at(obj, "status.completionTime")
    if start is None:
        return ""
    return human(((parse(end) if end else now) - parse(start)).total_seconds())


def _ports(obj: Json, now: datetime) -> str:
    shown = []
    for port in _at(obj, "spec.ports", []):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port['port']}{node}/{port.get('protocol', 'TCP')}")
    return ",".join(shown) or "<none>"


def _external(obj: Json, now: datetime) -> str:
    kind = _at(obj, "spec.type")
    if kind == "ExternalName":
        return str(_at(obj, "spec.externalName", ""))
    addresses = [item.get("ip") or item.get("hostname", "") for item in _at(obj, "status.loadBalancer.ingress", [])]
    addresses += _at(obj, "spec.externalIPs", [])
    return ",".join(addresses) or ("<pending>" if kind == "LoadBalancer" else "<none>")


def _endpoints(obj: Json, now: datetime) -> str:
    shown = [
        f"{address.get('ip')}:{port.get('port')}"
        for subset in obj.get("subsets") or []
        for port in subset.get("ports") or []
        for address in subset.get("addresses") or []
    ]
    return _some(shown)


def _slice_addresses(obj: Json, now: datetime) -> str:
    return _some([address for endpoint in obj.get("endpoints") or [] for address in endpoint.get("addresses", [])])


def _slice_ports(obj: Json, now: datetime) -> str:
    return _some([str(port.get("port", "*")) for port in obj.get("ports") or []], "<unset>")


def _some(shown: list[str], nothing: str = "<none>") -> str:
    if not shown:
        return nothing
    return ",".join(shown[:3]) + (f" + {len(shown) - 3} more..." if len(shown) > 3 else "")


_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(path: str) -> Cell:
    return lambda obj, now: ",".join(_MODES.get(mode, mode) for mode in _at(obj, path, []))


def _claim_status(obj: Json, now: datetime) -> str:
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else str(_at(obj, "status.phase", ""))


def _claim_of(obj: Json, now: datetime) -> str:
    claim = _at(obj, "spec.claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _event_seen(path: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        return age(_at(obj, path) or _at(obj, "eventTime") or obj["metadata"]["creationTimestamp"], now)

    return cell


def _event_object(obj: Json, now: datetime) -> str:
    return f"{_at(obj, 'involvedObject.kind', '').lower()}/{_at(obj, 'involvedObject.name', '')}"


def _node_status(obj: Json, now: datetime) -> str:
    ready = [c for c in _at(obj, "status.conditions", []) if c["type"] == "Ready"]
    status = "Unknown" if not ready else "Ready" if ready[0]["status"] == "True" else "NotReady"
    return status + (",SchedulingDisabled" if _at(obj, "spec.unschedulable") else "")


def _node_roles(obj: Json, now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or "<none>"


def _node_address(kind: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        found = [item["address"] for item in _at(obj, "status.addresses", []) if item["type"] == kind]
        return found[0] if found else "<none>"

    return cell


def _hosts(obj: Json, now: datetime) -> str:
    return ",".join(rule.get("host", "*") for rule in _at(obj, "spec.rules", [])) or "*"


def _suspended(obj: Json, now: datetime) -> str:
    return "True" if _at(obj, "spec.suspend") else "False"


def _quota(obj: Json, *, limits: bool) -> str:
    hard, used = _at(obj, "status.hard", {}), _at(obj, "status.used", {})
    mine = [name for name in sorted(hard) if name.startswith("limits") is limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in mine)


_POD_SPEC = "spec.template.spec"

COLUMNS: dict[str, tuple[Column, ...]] = {
    "pods": (
        Column("Ready", pods.ready),
        Column("Status", pods.status),
        Column("Restarts", pods.restarts),
        AGE,
        _field("IP", "status.podIP", "<none>", wide=True),
        _field("Node", "spec.nodeName", "<none>", wide=True),
        _field("Nominated Node", "status.nominatedNodeName", "<none>", wide=True),
        Column("Readiness Gates", pods.gates, wide=True),
    ),
    "deployments.apps": (
        Column("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
        _field("Up-to-date", "status.updatedReplicas", 0),
        _field("Available", "status.availableReplicas", 0),
        AGE,
        *_containers(_POD_SPEC),
        _selector("spec.selector"),
    ),
    "replicasets.apps": (
        _field("Desired", "spec.replicas", 1, type="integer"),
        _field("Current", "status.replicas", 0, type="integer"),
        _field("Ready", "status.readyReplicas", 0, type="integer"),
        AGE,
        *_containers(_POD_SPEC),
        _selector("spec.selector"),
    ),
    "statefulsets.apps": (
        Column("Ready", _of("status.readyReplicas", "spec.replicas", 1)),
        AGE,
        *_containers(_POD_SPEC),
    ),
    "controllerrevisions.apps": (
        Column("Controller", lambda obj, now: pods.controller(obj)),
        _field("Revision", "revision", 0, type="integer"),
        AGE,
    ),
    "jobs.batch": (
        Column("Status", _job_status),
        Column("Completions", _job_completions),
        Column("Duration", _job_duration),
        AGE,
        *_containers(_POD_SPEC),
        _selector("spec.selector"),
    ),
    "cronjobs.batch": (
        _field("Schedule", "spec.schedule"),
        _field("Timezone", "spec.timeZone", "<none>"),
        Column("Suspend", _suspended, "boolean"),
        Column("Active", lambda obj, now: len(_at(obj, "status.active", [])), "integer"),
        Column("Last Schedule", lambda obj, now: pods.since(_at(obj, "status.lastScheduleTime"), now)),
        AGE,
        *_containers("spec.jobTemplate.spec.template.spec"),
        _selector("spec.jobTemplate.spec.selector"),
    ),
    "services": (
        _field("Type", "spec.type"),
        _field("Cluster-IP", "spec.clusterIP", "<none>"),
        Column("External-IP", _external),
        Column("Port(s)", _ports),
        AGE,
        _selector("spec.selector"),
    ),
    "endpoints": (Column("Endpoints", _endpoints), AGE),
    "endpointslices.discovery.k8s.io": (
        _field("AddressType", "addressType"),
        Column("Ports", _slice_ports),
        Column("Endpoints", _slice_addresses),
        AGE,
    ),
    "configmaps": (
        Column("Data", lambda obj, now: len(obj.get("data") or {}) + len(obj.get("binaryData") or {})),
        AGE,
    ),
    "secrets": (
        _field("Type", "type"),
        Column("Data", lambda obj, now: len(obj.get("data") or {})),
        AGE,
    ),
    "persistentvolumeclaims": (
        Column("Status", _claim_status),
        _field("Volume", "spec.volumeName"),
        _field("Capacity", "status.capacity.storage"),
        Column("Access Modes", _modes("status.accessModes")),
        _field("StorageClass", "spec.storageClassName"),
        _field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
        AGE,
        _field("VolumeMode", "spec.volumeMode", wide=True),
    ),
    "persistentvolumes": (
        _field("Capacity", "spec.capacity.storage"),
        Column("Access Modes", _modes("spec.accessModes")),
        _field("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
        Column("Status", _claim_status),
        Column("Claim", _claim_of),
        _field("StorageClass", "spec.storageClassName"),
        _field("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
        _field("Reason", "status.reason"),
        AGE,
        _field("VolumeMode", "spec.volumeMode", wide=True),
    ),
    "namespaces": (_field("Status", "status.phase"), AGE),
    "nodes": (
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        _field("Version", "status.nodeInfo.kubeletVersion"),
        Column("Internal-IP", _node_address("InternalIP"), wide=True),
        Column("External-IP", _node_address("ExternalIP"), wide=True),
        _field("OS-Image", "status.nodeInfo.osImage", "<unknown>", wide=True),
        _field("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>", wide=True),
        _field("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>", wide=True),
    ),
    "events": (
        Column("Last Seen", _event_seen("lastTimestamp")),
        _field("Type", "type"),
        _field("Reason", "reason"),
        Column("Object", _event_object),
        _field("Subobject", "involvedObject.fieldPath", wide=True),
        _field("Source", "source.component", wide=True),
        Column("Message", lambda obj, now: str(obj.get("message", "")).strip()),
        Column("First Seen", _event_seen("firstTimestamp"), wide=True),
        _field("Count", "count", 1, wide=True),
        Column("Name", lambda obj, now: obj["metadata"]["name"], wide=True),
    ),
    "resourcequotas": (
        Column("Request", lambda obj, now: _quota(obj, limits=False)),
        Column("Limit", lambda obj, now: _quota(obj, limits=True)),
        AGE,
    ),
    "leases.coordination.k8s.io": (_field("Holder", "spec.holderIdentity"), AGE),
    "networkpolicies.networking.k8s.io": (
        Column("Pod-Selector", lambda obj, now: _labels(_at(obj, "spec.podSelector"))),
        AGE,
    ),
    "ingresses.networking.k8s.io": (
        _field("Class", "spec.ingressClassName", "<none>"),
        Column("Hosts", _hosts),
        Column("Address", _external),
        Column("Ports", lambda obj, now: "80, 443" if _at(obj, "spec.tls") else "80"),
        AGE,
    ),
    "poddisruptionbudgets.policy": (
        _field("Min Available", "spec.minAvailable", "N/A"),
        _field("Max Unavailable", "spec.maxUnavailable", "N/A"),
        _field("Allowed Disruptions", "status.disruptionsAllowed", 0, type="integer"),
        AGE,
    ),
    "horizontalpodautoscalers.autoscaling": (
        _reference("Reference", "spec.scaleTargetRef"),
        Column("Targets", lambda obj, now: f"{len(_at(obj, 'spec.metrics', []))} metrics"),
        _field("MinPods", "spec.minReplicas", 1),
        _field("MaxPods", "spec.maxReplicas", 0, type="integer"),
        _field("Replicas", "status.currentReplicas", 0, type="integer"),
        AGE,
    ),
    "roles.rbac.authorization.k8s.io": (CREATED,),
    "clusterroles.rbac.authorization.k8s.io": (CREATED,),
    "rolebindings.rbac.authorization.k8s.io": (
        _reference("Role", "roleRef"),
        AGE,
    ),
    "clusterrolebindings.rbac.authorization.k8s.io": (
        _reference("Role", "roleRef"),
        AGE,
    ),
    "storageclasses.storage.k8s.io": (
        _field("Provisioner", "provisioner"),
        _field("ReclaimPolicy", "reclaimPolicy"),
        _field("VolumeBindingMode", "volumeBindingMode"),
        Column("AllowVolumeExpansion", lambda obj, now: bool(obj.get("allowVolumeExpansion"))),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": (
        _field("Value", "value", 0, type="integer"),
        Column("Global-Default", lambda obj, now: bool(obj.get("globalDefault")), "boolean"),
        AGE,
        _field("PreemptionPolicy", "preemptionPolicy"),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (CREATED,),
}
