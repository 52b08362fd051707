"""What is in a cluster before anyone puts something in: namespaces, their default service accounts, a storage class.

Also the two admission steps that a cluster's users rely on: a claim without a class gets the default class, and every new
namespace gets its `default` ServiceAccount (with the write that makes the namespace, so no pod can come too early).
"""

from __future__ import annotations

from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Json, ResourceType

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def bootstrap(registry: Registry) -> None:
    """Creates what is missing and installs the hooks."""
    registry.add_hook(
        "persistentvolumeclaims", lambda operation, rt, new, old: _default_class(registry, operation, new)
    )
    registry.on_created("namespaces", lambda obj: ensure_account(registry, obj["metadata"]["name"]))
    namespaces = registry.resource("", "namespaces")
    for name in NAMESPACES:
        _ensure(registry, namespaces, None, {"metadata": {"name": name}})
        ensure_account(registry, name)
    storage = {
        "metadata": {"name": "standard", "annotations": {_DEFAULT_CLASS: "true"}},
        "provisioner": "devcluster/folder",
    }
    _ensure(registry, registry.resource("storage.k8s.io", "storageclasses"), None, storage)


def ensure_account(registry: Registry, namespace: str) -> None:
    _ensure(registry, registry.resource("", "serviceaccounts"), namespace, {"metadata": {"name": "default"}})


def _ensure(registry: Registry, rt: ResourceType, namespace: str | None, obj: Json) -> None:
    try:
        registry.get(rt, namespace, obj["metadata"]["name"])
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        registry.create(rt, namespace, obj)


def _default_class(registry: Registry, operation: str, claim: Json) -> None:
    if operation != "CREATE" or claim["spec"].get("storageClassName") is not None:
        return
    classes, _ = registry.list(registry.resource("storage.k8s.io", "storageclasses"))
    for item in classes:
        if (item["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true":
            claim["spec"]["storageClassName"] = item["metadata"]["name"]
