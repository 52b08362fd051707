"""A custom type to try things on, and how to wait for what happens in the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tools.realcluster.http import Http, Json

WIDGETS_PATH = "/apis/example.com/v1/namespaces/{ns}/widgets"
CONFIG_MAPS_PATH = "/api/v1/namespaces/{ns}/configmaps"
PODS_PATH = "/api/v1/namespaces/{ns}/pods"
JOBS_PATH = "/apis/batch/v1/namespaces/{ns}/jobs"
CRDS_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

WIDGET_SCHEMA: Json = {
    "type": "object",
    "description": "A widget of any size.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How large it is."},
                "color": {"type": "string", "enum": ["red", "blue", "green"], "default": "red"},
                "replicas": {"type": "integer", "format": "int32"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
                "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
                "when": {"type": "string", "format": "date-time"},
                "amount": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "set"},
                "list": {"type": "array", "items": {"type": "integer"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "number": {"type": "integer", "default": 80},
                            "note": {"type": "string"},
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "atomic": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                },
                "frame": {
                    "type": "object",
                    "default": {},
                    "properties": {"wood": {"type": "string", "default": "oak"}, "width": {"type": "integer"}},
                },
                "maybe": {"type": "string", "nullable": True},
                "fixed": {
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
                },
                "low": {"type": "integer"},
                "high": {"type": "integer"},
            },
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                    "messageExpression": "self.low > 50 ? 'low is far above high' : 'low is above high'",
                    "reason": "FieldValueInvalid",
                    "fieldPath": ".low",
                }
            ],
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                    },
                },
            },
        },
    },
}


def crd(plural: str = "widgets", kind: str = "Widget", **version: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    **version,
                }
            ],
        },
    }


WIDGETS = crd(
    schema={"openAPIV3Schema": WIDGET_SCHEMA},
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    additionalPrinterColumns=[
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "Where it is."},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
    selectableFields=[{"jsonPath": ".spec.color"}],
)
WIDGETS["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}


def widget(name: str = "a", **spec: Any) -> Json:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


async def establish(api: Http, definition: Json) -> Json:
    """Create a CRD and wait until it is served; its object."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    created = await api.ok("POST", path, definition)
    name, spec = created["metadata"]["name"], created["spec"]

    async def served() -> bool:
        obj = await api.ok("GET", f"{path}/{name}")
        conditions = {c["type"]: c["status"] for c in (obj.get("status") or {}).get("conditions") or ()}
        if conditions.get("Established") != "True":
            return False
        answer = await api("GET", f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}")
        return answer.code == 200

    await until(served)
    found: Json = await api.ok("GET", f"{path}/{name}")
    return found


async def until(check: Callable[[], Any], *, seconds: float = 30) -> Any:
    """The first true answer of `check`; asked again and again, for what is under test happens in another process."""
    last: Any = None
    try:
        async with asyncio.timeout(seconds):
            while not (last := await check()):
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise AssertionError(f"not so after {seconds:.0f} s") from error
    return last
