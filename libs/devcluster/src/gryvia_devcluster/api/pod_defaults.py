"""Defaults of a pod's spec, for pods and for every template that holds one."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.types import Json

_FILE_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")


def default_pod_spec(spec: Json) -> None:
    """In place, as the real server's SetDefaults functions do."""
    for field, value in (
        ("restartPolicy", "Always"),
        ("terminationGracePeriodSeconds", 30),
        ("dnsPolicy", "ClusterFirst"),
        ("schedulerName", "default-scheduler"),
    ):
        spec.setdefault(field, value)
    spec.setdefault("securityContext", {})
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        _default_container(container)
    for volume in spec.get("volumes") or []:
        _default_volume(volume)


def _default_container(container: Json) -> None:
    image = container.get("image", "")
    name, _, tag = image.rpartition("/")[2].partition(":")
    floating = (not tag and "@" not in name) or tag == "latest"
    container.setdefault("imagePullPolicy", "Always" if floating else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    for resource, limit in (resources.get("limits") or {}).items():
        resources.setdefault("requests", {}).setdefault(resource, limit)
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or []:
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if reference is not None:
            reference.setdefault("apiVersion", "v1")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _default_probe(container[probe])
    for hook in (container.get("lifecycle") or {}).values():
        if isinstance(hook, dict) and "httpGet" in hook:
            _default_http(hook["httpGet"])


def _default_probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(field, value)
    if "httpGet" in probe:
        _default_http(probe["httpGet"])


def _default_http(action: Json) -> None:
    action.setdefault("path", "/")
    action.setdefault("scheme", "HTTP")


def _default_volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in _FILE_VOLUMES:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    for projection in (volume.get("projected") or {}).get("sources") or []:
        for item in (projection.get("downwardAPI") or {}).get("items") or []:
            if "fieldRef" in item:
                item["fieldRef"].setdefault("apiVersion", "v1")
    for item in (volume.get("downwardAPI") or {}).get("items") or []:
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, by the containers' cpu and memory."""
    containers: list[Any] = [*spec.get("containers", []), *(spec.get("initContainers") or [])]
    guaranteed, anything = True, False
    for container in containers:
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        anything = anything or bool(limits or requests)
        for resource in ("cpu", "memory"):
            if not limits.get(resource) or str(limits[resource]) != str(requests.get(resource)):
                guaranteed = False
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
