"""The merge topology of the built-in types: facts of k8s.io/api's `listType`, `patchStrategy` and `patchMergeKey`
markers.

Only what deviates from the default is written down (default: structs merge field by field, lists are replaced). The
types are those that Gryvia's services, kubectl and this cluster's own controllers handle; any other kind gets the
default and ObjectMeta. `inline` marks structs that Go always serialises: the real server never lists them as owned by
themselves.
"""

from __future__ import annotations

from gryvia_devcluster.patch.topology import (
    GRANULAR_MAP,
    LEAF,
    OBJECT_META,
    STRING_SET,
    STRUCT,
    Node,
    Shape,
    keyed,
    struct,
)

_INLINE = struct({}, inline=True)
_BY_TYPE = keyed("type", STRUCT)
# Job conditions are replaced by server-side apply and merged by strategic merge patch, as upstream declares them.
_ATOMIC_BY_TYPE = Node(Shape.LEAF, merge_key="type", elem=STRUCT)
_PROTOCOL = {"protocol": "TCP"}

_RESOURCES = struct(
    {"limits": GRANULAR_MAP, "requests": GRANULAR_MAP, "claims": keyed("name", STRUCT)},
    inline=True,
)
_LOCAL_REFERENCES = keyed("name", LEAF)
_SECRET_REF = struct({"secretRef": LEAF, "nodePublishSecretRef": LEAF, "volumeAttributes": GRANULAR_MAP})
_VALUE_FROM = struct(
    dict.fromkeys(("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"), LEAF)
)

_CONTAINER = struct(
    {
        "env": keyed("name", struct({"valueFrom": _VALUE_FROM})),
        "ports": keyed(("containerPort", "protocol"), STRUCT, defaults=_PROTOCOL),
        "resources": _RESOURCES,
        "volumeDevices": keyed("devicePath", STRUCT),
        "volumeMounts": keyed("mountPath", STRUCT),
    }
)
_CLAIM_SPEC_FIELDS = {"selector": LEAF, "dataSource": LEAF, "resources": _RESOURCES}
_CLAIM_STATUS = struct(
    {"conditions": _BY_TYPE, "capacity": GRANULAR_MAP, "allocatedResources": GRANULAR_MAP}, inline=True
)
_CLAIM = {"metadata": OBJECT_META, "spec": struct(_CLAIM_SPEC_FIELDS, inline=True)}
_VOLUME = struct(
    {
        **dict.fromkeys(("csi", "cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos"), _SECRET_REF),
        "ephemeral": struct({"volumeClaimTemplate": struct(_CLAIM)}),
    },
    retain_keys=True,
)
_SELECTOR_TERM = struct({"labelSelector": LEAF, "namespaceSelector": LEAF})
_POD_SPEC = struct(
    {
        "containers": keyed("name", _CONTAINER, inline=True),
        "initContainers": keyed("name", _CONTAINER),
        "ephemeralContainers": keyed("name", _CONTAINER),
        "hostAliases": keyed("ip", STRUCT),
        "imagePullSecrets": _LOCAL_REFERENCES,
        "nodeSelector": Node(Shape.LEAF, elem=LEAF),
        "overhead": GRANULAR_MAP,
        "resourceClaims": keyed("name", STRUCT),
        "schedulingGates": keyed("name", STRUCT),
        "topologySpreadConstraints": keyed(("topologyKey", "whenUnsatisfiable"), _SELECTOR_TERM),
        "volumes": keyed("name", _VOLUME),
        "affinity": struct(
            {
                "nodeAffinity": struct({"requiredDuringSchedulingIgnoredDuringExecution": LEAF}),
            }
        ),
    },
    inline=True,
)
_POD_STATUS = struct(
    {"conditions": _BY_TYPE, "podIPs": keyed("ip", STRUCT), "resourceClaimStatuses": keyed("name", STRUCT)},
    inline=True,
)
_POD_TEMPLATE = struct({"metadata": OBJECT_META, "spec": _POD_SPEC}, inline=True)
_STATUS = struct({"conditions": _BY_TYPE}, inline=True)
_STRATEGY = struct({}, inline=True, retain_keys=True)


def _workload(**spec: Node) -> Node:
    fields = {"selector": LEAF, "template": _POD_TEMPLATE, "strategy": _STRATEGY, "updateStrategy": _INLINE, **spec}
    return _top(spec=struct(fields, inline=True), status=_STATUS)


def _top(**fields: Node) -> Node:
    return struct({"apiVersion": LEAF, "kind": LEAF, "metadata": OBJECT_META, **fields}, inline=True)


_JOB_SPEC = struct(
    {"selector": LEAF, "template": _POD_TEMPLATE},
    inline=True,
)
_JOB_STATUS = struct(
    {
        "conditions": _ATOMIC_BY_TYPE,
        "uncountedTerminatedPods": struct({"failed": STRING_SET, "succeeded": STRING_SET}),
    },
    inline=True,
)
_SERVICE_PORTS = keyed(("port", "protocol"), STRUCT, defaults=_PROTOCOL)
_PEERS = struct({"podSelector": LEAF, "namespaceSelector": LEAF})
_HARD = struct({"hard": GRANULAR_MAP, "used": GRANULAR_MAP, "scopeSelector": LEAF}, inline=True)

_DEFAULT = _top(spec=_INLINE, status=_STATUS)
_TYPES: dict[tuple[str, str], Node] = {
    ("", "Pod"): _top(spec=_POD_SPEC, status=_POD_STATUS),
    ("", "PodTemplate"): _top(template=_POD_TEMPLATE),
    ("", "ReplicationController"): _workload(selector=Node(Shape.LEAF, elem=LEAF)),
    ("", "Service"): _top(
        spec=struct({"ports": _SERVICE_PORTS, "selector": Node(Shape.LEAF, elem=LEAF)}, inline=True),
        status=struct({"conditions": _BY_TYPE, "loadBalancer": _INLINE}, inline=True),
    ),
    ("", "ConfigMap"): _top(data=GRANULAR_MAP, binaryData=GRANULAR_MAP),
    ("", "Secret"): _top(data=GRANULAR_MAP, stringData=GRANULAR_MAP),
    ("", "ServiceAccount"): _top(secrets=keyed("name", LEAF)),
    ("", "PersistentVolumeClaim"): _top(spec=struct(_CLAIM_SPEC_FIELDS, inline=True), status=_CLAIM_STATUS),
    ("", "PersistentVolume"): _top(
        spec=struct({"capacity": GRANULAR_MAP, "claimRef": LEAF}, inline=True), status=_INLINE
    ),
    ("", "Node"): _top(
        spec=struct({"podCIDRs": STRING_SET}, inline=True),
        status=struct(
            {
                "conditions": _BY_TYPE,
                "addresses": keyed("type", STRUCT),
                "capacity": GRANULAR_MAP,
                "allocatable": GRANULAR_MAP,
            },
            inline=True,
        ),
    ),
    ("", "Event"): _top(involvedObject=LEAF, related=LEAF, source=_INLINE),
    ("", "ResourceQuota"): _top(spec=_HARD, status=_HARD),
    ("apps", "Deployment"): _workload(),
    ("apps", "ReplicaSet"): _workload(),
    ("apps", "DaemonSet"): _workload(),
    ("apps", "StatefulSet"): _workload(),
    ("batch", "Job"): _top(spec=_JOB_SPEC, status=_JOB_STATUS),
    ("batch", "CronJob"): _top(
        spec=struct(
            {"jobTemplate": struct({"metadata": OBJECT_META, "spec": _JOB_SPEC}, inline=True)},
            inline=True,
        ),
        status=_INLINE,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): _top(
        spec=struct({"scaleTargetRef": _INLINE}, inline=True), status=_STATUS
    ),
    ("networking.k8s.io", "NetworkPolicy"): _top(spec=struct({"podSelector": LEAF}, inline=True)),
    ("policy", "PodDisruptionBudget"): _top(spec=struct({"selector": LEAF}, inline=True), status=_STATUS),
    ("rbac.authorization.k8s.io", "RoleBinding"): _top(roleRef=LEAF),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _top(roleRef=LEAF),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _top(
        spec=_INLINE,
        status=_STATUS,
    ),
}


def builtin_topology(group_kind: tuple[str, str]) -> Node:
    return _TYPES.get(group_kind, _DEFAULT)
