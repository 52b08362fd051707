"""What makes a CustomResourceDefinition invalid: its names, its versions and its schemas."""

from __future__ import annotations

import json
from typing import Any

from gryvia_devcluster.api import refusals
from gryvia_devcluster.schema import check_structural
from gryvia_devcluster.types import Json

_NAMES = ("plural", "singular", "kind", "listKind")
_NONE_STORED = "must have at least one stored version"
_REFERENCE = ".$ref: Forbidden: $ref is not supported"
_REASONS = {
    "Forbidden": "FieldValueForbidden",
    "Required": "FieldValueRequired",
    "Unsupported": "FieldValueNotSupported",
    "Duplicate": "FieldValueDuplicate",
    "Too long": "FieldValueTooLong",
    "Too many": "FieldValueTooMany",
}


def crd_causes(obj: Json, old: Json | None) -> list[refusals.Cause]:
    spec: Json = obj.get("spec") or {}
    names: Json = spec.get("names") or {}
    causes = [refusals.required(f"spec.{path}") for path in ("group", "scope") if not spec.get(path)]
    causes += [refusals.required(f"spec.names.{path}") for path in _NAMES if not names.get(path)]
    if spec.get("scope") and spec["scope"] not in ("Cluster", "Namespaced"):
        causes.append(refusals.unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if obj["metadata"]["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        causes.append(refusals.invalid_value("metadata.name", obj["metadata"]["name"], why))
    if old is not None and old["spec"]["scope"] != spec["scope"]:
        causes.append(refusals.invalid_value("spec.scope", spec["scope"], "field is immutable"))
    return causes + _version_causes(spec, old)


def _version_causes(spec: Json, old: Json | None) -> list[refusals.Cause]:
    versions: list[Any] = spec.get("versions") or []
    causes = []
    if len({version.get("name") for version in versions}) < len(versions):
        causes.append(_versions_cause(versions, "must contain unique version names"))
    stored = [version.get("name") for version in versions if version.get("storage")]
    if len(stored) != 1:
        causes.append(_versions_cause(versions, "must have exactly one version marked as storage version"))
        # What the server has noted of the stored versions makes no sense then either.
        noted = stored[:1] or None
        why = f"must have the storage version {stored[0]}" if stored else _NONE_STORED
        causes.append(refusals.invalid_value("status.storedVersions", noted, why))
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
            causes += [_schema_cause(place, text) for text in _decisive(check_structural(schema))]
    return causes


def _decisive(texts: list[str]) -> list[str]:
    """A schema with references is not looked at any further."""
    return [text for text in texts if text.endswith(_REFERENCE)] or texts


def _versions_cause(versions: list[Any], why: str) -> refusals.Cause:
    """With the versions as the real server prints them: what they all have in common has been put elsewhere."""
    parts = {"Schema": "schema", "Subresources": "subresources", "AdditionalPrinterColumns": "additionalPrinterColumns"}
    parts["SelectableFields"] = "selectableFields"
    first: Json = versions[0] if versions else {}
    common = {field for field in parts.values() if all(version.get(field) == first.get(field) for version in versions)}
    shown = [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            **{title: None if field in common else version.get(field) for title, field in parts.items()},
        }
        for version in versions
    ]
    text = json.dumps(shown, separators=(",", ":"))
    return {"reason": "FieldValueInvalid", "message": f"Invalid value: {text}: {why}", "field": "spec.versions"}


def _schema_cause(where: str, text: str) -> refusals.Cause:
    """check_structural speaks of spec.validation.openAPIV3Schema, the place of a schema before there were versions."""
    path, _, message = text.partition(": ")
    field = path.replace("spec.validation.openAPIV3Schema", where, 1)
    reason = next((reason for start, reason in _REASONS.items() if message.startswith(start)), "FieldValueInvalid")
    if " in body must be of type " in message:
        reason = "FieldValueTypeInvalid"
    return {"reason": reason, "message": message, "field": field}
