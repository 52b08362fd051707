"""What is wrong with a manifest, without a cluster: its fields for every kind; workflows and registry entries as a whole.

These two are judged by the functions their services judge by, so the sentences are the same. A schedule that names no time is
refused here; the service takes it and waits, saying the same. What is the operator's to set is not judged. Imported by the verb
that needs it: the engine of conditions is nothing to start every command with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from gryvia_cli.unknown_fields import unknown_fields
from gryvia_common.kinds.catalogue import BY_NAME
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.modelregistry import GryviaModelRegistrySpec
from gryvia_common.kinds.workflow import GryviaWorkflowSpec
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import GROUP, VERSION
from gryvia_common.runtime.parsing import describe
from gryvia_models import problems
from gryvia_pipelines import schedule
from gryvia_pipelines.conditions import compile_condition
from gryvia_pipelines.validation import check

WEBHOOKS = "whether webhooks are allowed (step {steps}) is the operator's setting and not judged here"


def finding(manifest: Json, now: datetime) -> Json:
    """`valid` is None for what is not checked. What is valid and has no effect is named in the message."""
    found: Json = {"kind": manifest["kind"], "name": metadata(manifest)["name"]}
    kind = BY_NAME.get(manifest["kind"])
    if kind is None:
        return {**found, "valid": None, "message": "not a kind of Gryvia, not checked"}
    wrong, *said = _judged(kind, manifest, now)
    if wrong:
        return {**found, "valid": False, "message": wrong}
    return {**found, "valid": True, "message": "; ".join(["valid", *said])}


def _judged(kind: Kind[Any, Any], manifest: Json, now: datetime) -> tuple[str, ...]:
    """What is wrong, empty when nothing is; then what is to be said all the same."""
    if manifest["apiVersion"] != f"{GROUP}/{VERSION}":
        return (f"apiVersion: {manifest['apiVersion']!r} is not served, write {GROUP}/{VERSION}",)
    if strange := unknown_fields(kind, manifest):
        return (f"unknown field {', '.join(strange)}",)
    raw = manifest.get("spec") or {}
    try:
        spec = kind.spec.model_validate(raw)
    except ValidationError as error:
        return (describe(error, "spec"),)
    if isinstance(spec, GryviaWorkflowSpec):
        return _workflow(spec, raw, now)
    if isinstance(spec, GryviaModelRegistrySpec):
        return "; ".join(problems.of_entry(spec)), *_without_effect(problems.without_effect(spec))
    return ("",)


def _workflow(spec: GryviaWorkflowSpec, raw: Json, now: datetime) -> tuple[str, ...]:
    checked = check(spec, raw, compile_condition)
    if wrong := checked.problems or schedule.never(spec, now):
        return (wrong,)
    calls = [name for name, kind in checked.types.items() if kind == "webhook"]
    return "", *_without_effect(checked.ignored), *([WEBHOOKS.format(steps=", ".join(calls))] if calls else [])


def _without_effect(fields: Iterable[str]) -> Iterator[str]:
    yield from (f"has no effect: {field}" for field in fields)
