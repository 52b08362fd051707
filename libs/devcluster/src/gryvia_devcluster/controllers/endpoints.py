"""Endpoints and EndpointSlices of services with a selector.

A pod is in when it is ready and not on its way out; a service that publishes not-ready addresses has every pod with an
address as ready, which is what workers that find each other before they are ready depend on. Host names are set for pods
whose subdomain is the service, so that `<host>.<service>` resolves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from gryvia_devcluster.controllers.actions import Action, Create, Replace
from gryvia_devcluster.controllers.cache import Cache, Ref
from gryvia_devcluster.controllers.podstate import is_deleting, is_finished, is_ready, owner_reference
from gryvia_devcluster.controllers.shell import Controller
from gryvia_devcluster.types import Json

_SLICE_OWNER = "endpointslice-controller.k8s.io"


def endpoint_controllers() -> list[Controller]:
    return [Controller("endpoints-controller", "services", _gather, sync_endpoints, _wake)]


def selects(selector: Mapping[str, str] | None, labels: Mapping[str, str] | None) -> bool:
    return bool(selector) and all((labels or {}).get(key) == value for key, value in (selector or {}).items())


def _gather(cache: Cache, service: Json) -> Sequence[Json]:
    """The pods it selects, its Endpoints and its slice."""
    meta = service["metadata"]
    selector = service["spec"].get("selector")
    pods = [p for p in cache.listing("pods", meta["namespace"]) if selects(selector, p["metadata"].get("labels"))]
    existing = [
        cache.get("endpoints", meta["namespace"], meta["name"]),
        cache.get("endpointslices.discovery.k8s.io", meta["namespace"], slice_name(service)),
    ]
    return [*pods, *(obj for obj in existing if obj is not None)]


def _wake(cache: Cache, ref: Ref, obj: Json) -> Iterable[Ref]:
    if ref.resource == "pods":
        for service in cache.listing("services", ref.namespace):
            if selects(service["spec"].get("selector"), obj["metadata"].get("labels")):
                yield Ref("services", ref.namespace, service["metadata"]["name"])
    elif ref.resource == "endpoints":
        yield Ref("services", ref.namespace, ref.name)
    elif ref.resource == "endpointslices.discovery.k8s.io":
        owner = (obj["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
        if owner:
            yield Ref("services", ref.namespace, owner)


def slice_name(service: Json) -> str:
    """The real controller draws a suffix; one slice is enough here, so its name is made from the service's uid."""
    return f"{service['metadata']['name']}-{service['metadata']['uid'][:5]}"


def sync_endpoints(service: Json, related: Sequence[Json], now: datetime) -> list[Action]:
    spec = service["spec"]
    if is_deleting(service) or not spec.get("selector") or spec.get("type") == "ExternalName":
        return []
    by_kind: dict[str, list[Json]] = {"Pod": [], "Endpoints": [], "EndpointSlice": []}
    for obj in related:
        by_kind[obj["kind"]].append(obj)
    pods = [pod for pod in by_kind["Pod"] if pod.get("status", {}).get("podIP") and not is_finished(pod)]
    publish = bool(spec.get("publishNotReadyAddresses"))
    actions = _put(_endpoints(service, pods, publish), by_kind["Endpoints"], ("subsets",))
    return [*actions, *_put(_slice(service, pods, publish), by_kind["EndpointSlice"], ("endpoints", "ports"))]


def _put(wanted: Json, existing: list[Json], fields: tuple[str, ...]) -> list[Action]:
    if not existing:
        return [Create(wanted)]
    (old,) = existing
    if all((old.get(field) or []) == (wanted.get(field) or []) for field in fields):
        return []
    return [Replace({**old, **{field: wanted.get(field) for field in fields}})]


def _endpoints(service: Json, pods: Sequence[Json], publish: bool) -> Json:
    meta = service["metadata"]
    groups: dict[str, Json] = {}
    for pod in pods:
        ready = publish or (is_ready(pod) and not is_deleting(pod))
        ports = _ports(service, pod)
        subset = groups.setdefault(str(ports), {"ports": ports} if ports else {})
        subset.setdefault("addresses" if ready else "notReadyAddresses", []).append(_address(service, pod))
    labels = {**(meta.get("labels") or {}), "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "subsets": list(groups.values()),
    }


def _address(service: Json, pod: Json) -> Json:
    reference = {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    address = {"ip": pod["status"]["podIP"], "targetRef": {**reference, "uid": pod["metadata"]["uid"]}}
    if pod["spec"].get("nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    if pod["spec"].get("hostname") and pod["spec"].get("subdomain") == service["metadata"]["name"]:
        address["hostname"] = pod["spec"]["hostname"]
    return address


def _ports(service: Json, pod: Json) -> list[Json]:
    """The service's ports as numbers in this pod; a port name that the pod does not have is left out."""
    found: list[Json] = []
    for port in service["spec"].get("ports") or ():
        number = _target_port(port, pod)
        if number is not None:
            entry = {"port": number, "protocol": port.get("protocol", "TCP")}
            found.append({"name": port["name"], **entry} if port.get("name") else entry)
    return found


def _target_port(port: Json, pod: Json) -> int | None:
    target: int | str = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for declared in container.get("ports") or ():
            if declared.get("name") == target:
                return int(declared["containerPort"])
    return int(target) if str(target).isdecimal() else None


def _slice(service: Json, pods: Sequence[Json], publish: bool) -> Json:
    meta = service["metadata"]
    labels = {"kubernetes.io/service-name": meta["name"], "endpointslice.kubernetes.io/managed-by": _SLICE_OWNER}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": slice_name(service),
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(service, pod, publish) for pod in pods],
        "ports": _slice_ports(service, pods),
    }


def _endpoint(service: Json, pod: Json, publish: bool) -> Json:
    address = _address(service, pod)
    serving = is_ready(pod)
    conditions = {
        "ready": publish or (serving and not is_deleting(pod)),
        "serving": serving,
        "terminating": is_deleting(pod),
    }
    endpoint: Json = {"addresses": [address["ip"]], "conditions": conditions, "targetRef": address["targetRef"]}
    return endpoint | {key: address[key] for key in ("hostname", "nodeName") if key in address}


def _slice_ports(service: Json, pods: Sequence[Json]) -> list[Json]:
    ports = _ports(service, pods[0]) if pods else []
    return [{"name": port.get("name", ""), **port} for port in ports]
