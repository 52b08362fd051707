"""The CustomResourceDefinition of a kind, from its Kind value.

Invariant: deterministic, and below 1 MB as JSON (etcd takes 1.5 MB; the job template stands in several kinds in full).
"""

from __future__ import annotations

from typing import Any

import yaml

from gryvia_common.kinds.kind import Column, Kind
from gryvia_common.kinds.schema import structural
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CRDS, GROUP, VERSION

CATEGORY = "gryvia"
_ROOT: Json = {
    "apiVersion": {
        "type": "string",
        "description": f"Version of the schema this object is written in: {GROUP}/{VERSION}.",
    },
    "kind": {"type": "string", "description": "Kind of the object."},
    "metadata": {"type": "object"},
}


def crd(kind: Kind[Any, Any]) -> Json:
    """The CRD as it is applied to a cluster."""
    names: Json = {
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": kind.plural,
        "singular": kind.name.lower(),
        "categories": [CATEGORY],
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{kind.plural}.{GROUP}", "labels": {"app.kubernetes.io/part-of": "gryvia"}},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def crd_yaml(kind: Kind[Any, Any]) -> str:
    """The CRD as a file."""
    return yaml.dump(crd(kind), Dumper=_Dumper, sort_keys=True, width=120, allow_unicode=True)


def _version(kind: Kind[Any, Any]) -> Json:
    version: Json = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": object_schema(kind)},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    subresources: Json = {}
    if kind.status_subresource:
        subresources["status"] = {}
    if kind.scale:
        subresources["scale"] = {
            "specReplicasPath": kind.scale.spec_replicas,
            "statusReplicasPath": kind.scale.status_replicas,
            **({"labelSelectorPath": kind.scale.selector} if kind.scale.selector else {}),
        }
    if subresources:
        version["subresources"] = subresources
    return version


def object_schema(kind: Kind[Any, Any]) -> Json:
    """The schema of a whole object of the kind."""
    properties = {**_ROOT, "spec": structural(kind.spec)}
    if kind.status_subresource:
        properties["status"] = structural(kind.status)
    schema: Json = {"type": "object", "description": kind.summary, "properties": properties, "required": ["spec"]}
    if kind.rules:
        schema["x-kubernetes-validations"] = [rule.schema() for rule in kind.rules]
    return schema


def _column(column: Column) -> Json:
    result: Json = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.format:
        result["format"] = column.format
    return result


class _Dumper(yaml.SafeDumper):
    """No anchors: the same object twice is written twice, as people and tools expect of a manifest."""

    def ignore_aliases(self, data: object) -> bool:
        return True
