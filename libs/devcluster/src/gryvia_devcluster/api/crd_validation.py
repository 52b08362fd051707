"""What makes a CustomResourceDefinition invalid: its names, its versions and its schemas."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.schema import check_structural
from gryvia_devcluster.types import Json


def crd_causes(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec: Json = obj.get("spec") or {}
    names: Json = spec.get("names") or {}
    causes = [refusals.required(f"spec.{path}") for path in ("group", "scope") if not spec.get(path)]
    causes += [refusals.required(f"spec.names.{path}") for path in ("plural", "kind") if not names.get(path)]
    if causes:
        return causes
    if spec["scope"] not in ("Cluster", "Namespaced"):
        causes.append(refusals.unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    wanted = f"{names['plural']}.{spec['group']}"
    if obj["metadata"]["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        causes.append(refusals.invalid_value("metadata.name", obj["metadata"]["name"], why))
    if old is not None and old["spec"]["scope"] != spec["scope"]:
        causes.append(refusals.invalid_value("spec.scope", spec["scope"], "field is immutable"))
    return causes + _version_causes(spec, old)


def _version_causes(spec: Json, old: Json | None) -> list[refusals.Cause]:
    versions: list[Any] = spec.get("versions") or []
    causes = []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        why = "must have exactly one version marked as storage version"
        causes.append(refusals.invalid_value("spec.versions", "", why))
    known = {version["name"]: version.get("schema") for version in (old or {}).get("spec", {}).get("versions", [])}
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        if not version.get("name"):
            causes.append(refusals.required(f"{where}.name"))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            causes.append(refusals.required(f"{where}.schema.openAPIV3Schema", "schemas are required"))
        elif known.get(version.get("name")) != version["schema"]:
            # The real server keeps a schema that all versions share in the place it had before there were versions.
            place = f"{where}.schema.openAPIV3Schema" if len(versions) > 1 else "spec.validation.openAPIV3Schema"
            causes += [_schema_cause(place, text) for text in check_structural(schema)]
    return causes


def _schema_cause(where: str, text: str) -> refusals.Cause:
    """check_structural speaks of spec.validation.openAPIV3Schema, the place of a schema before there were versions."""
    path, _, message = text.partition(": ")
    field = path.replace("spec.validation.openAPIV3Schema", where, 1)
    reason = "FieldValueForbidden" if message.startswith("Forbidden") else "FieldValueInvalid"
    if message.startswith("Required"):
        reason = "FieldValueRequired"
    return {"reason": reason, "message": message, "field": field}
