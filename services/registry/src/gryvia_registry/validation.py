"""What is wrong with an entry's spec, and what of it has no effect: pure sentences that name field, value and fix.

An entry whose spec is wrong is Failed and asks for nothing, neither production nor an alias, until it is mended; one that is in
production stays there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from gryvia_common.kinds.modelregistry import ModelArtifacts, PromotionPolicy, RollbackPolicy, ServingConfig
from gryvia_common.kube.names import is_label_value, is_service_name, is_subdomain
from gryvia_common.numbers import parse_decimal
from gryvia_registry.entry import Entry

FORMATS = ("pytorch", "onnx", "tensorrt", "safetensors", "other")
ALIASES = 20
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*")


def problems(entry: Entry) -> list[str]:
    spec = entry.spec
    return [
        *_names(entry),
        *_artifacts(spec.artifacts),
        *(_serving(spec.serving_config) if spec.serving_config else ()),
        *(_promotion(spec.promotion_policy) if spec.promotion_policy else ()),
        *(_rollback(spec.rollback_policy) if spec.rollback_policy else ()),
        *_aliases(entry),
    ]


def without_effect(entry: Entry) -> list[str]:
    spec, found = entry.spec, []
    config = spec.serving_config
    if config is not None and not spec.auto_serve:
        found.append("spec.servingConfig: spec.autoServe is false")
    elif config is not None and not config.service_name:
        shared = {"canary_weight": "canaryWeight", "promote_after_seconds": "promoteAfterSeconds"}
        unused = [wire for name, wire in shared.items() if name in config.model_fields_set]
        found += [f"spec.servingConfig.{name}: needs spec.servingConfig.serviceName" for name in unused]
    policy = spec.promotion_policy
    if policy is not None and spec.stage in (None, "dev"):
        found.append("spec.promotionPolicy: it is looked at in stage staging; set spec.stage to staging")
    return found


def _names(entry: Entry) -> Iterator[str]:
    spec = entry.spec
    for field, text in (("modelName", spec.model_name), ("version", spec.version)):
        if not text or text != text.strip() or len(text) > 253 or not text.isprintable():
            yield f"spec.{field}: {_shown(text)} is no name; use 1 to 253 characters, without spaces around them"
    refs = spec.source.model_dump(by_alias=True, exclude_none=True) if spec.source else {}
    for field, text in refs.items():
        if not is_subdomain(text):
            yield f"spec.source.{field}: {_shown(text)} cannot name an object; use its metadata.name, or leave it out"


def _artifacts(artifacts: ModelArtifacts) -> Iterator[str]:
    if not artifacts.s3_path and not artifacts.pvc_name:
        yield "spec.artifacts: neither s3Path nor pvcName is set; say where the files are"
    if artifacts.s3_path and _URI.fullmatch(artifacts.s3_path) is None:
        yield f"spec.artifacts.s3Path: {_shown(artifacts.s3_path)} is no URI; write it like s3://bucket/path"
    if artifacts.pvc_name and not is_subdomain(artifacts.pvc_name):
        yield f"spec.artifacts.pvcName: {_shown(artifacts.pvc_name)} cannot name a claim; use its metadata.name"
    path = artifacts.sub_path or ""
    if path.startswith("/") or ".." in path.split("/"):
        yield f"spec.artifacts.subPath: {_shown(path)} leads out of the volume; write a relative path without '..'"
    if artifacts.format is not None and artifacts.format not in FORMATS:
        yield f"spec.artifacts.format: {_shown(artifacts.format)} is unknown; use one of {', '.join(FORMATS)}"
    if artifacts.size_bytes is not None and artifacts.size_bytes < 0:
        yield f"spec.artifacts.sizeBytes: {artifacts.size_bytes} is negative; set it to 0 or more, or leave it out"


def _serving(config: ServingConfig) -> Iterator[str]:
    counts = {
        "replicas": config.replicas,
        "gpuCount": config.gpu_count,
        "promoteAfterSeconds": config.promote_after_seconds,
    }
    for field, value in counts.items():
        if value is not None and value < 0:
            yield f"spec.servingConfig.{field}: {value} is negative; set it to 0 or more"
    if not 0 <= config.canary_weight <= 100:
        yield f"spec.servingConfig.canaryWeight: {config.canary_weight} is no percentage; set it to 0 to 100"
    if config.gpu_type and not is_label_value(config.gpu_type):
        shown = _shown(config.gpu_type)
        yield f"spec.servingConfig.gpuType: {shown} cannot be the value of a node label; use letters, digits, '-', '_', '.'"
    if config.service_name and not is_service_name(config.service_name):
        shown = _shown(config.service_name)
        yield f"spec.servingConfig.serviceName: {shown} cannot name a service; use lower-case letters, digits and '-'"


def _promotion(policy: PromotionPolicy) -> Iterator[str]:
    if not policy.metric:
        yield 'spec.promotionPolicy.metric: "" is no key; name the key of spec.metadata to compare'
    least = parse_decimal(policy.min_delta)
    if least is None or least < 0:
        shown = _shown(policy.min_delta)
        yield f"spec.promotionPolicy.minDelta: {shown} is no decimal of 0 or more; write it like 0.002, or leave it out"
    if policy.threshold is not None and parse_decimal(policy.threshold) is None:
        yield f"spec.promotionPolicy.threshold: {_shown(policy.threshold)} is no decimal; write it like 0.9, or leave it out"
    if policy.stderr_metric is not None and policy.stderr_metric in ("", policy.metric):
        shown = _shown(policy.stderr_metric)
        yield f"spec.promotionPolicy.stderrMetric: {shown} is not a key of its own; name the key that holds the standard error"


def _rollback(policy: RollbackPolicy) -> Iterator[str]:
    if not policy.metric:
        yield 'spec.rollbackPolicy.metric: "" is no key; name the key of spec.metadata to watch'
    if parse_decimal(policy.threshold) is None:
        yield f"spec.rollbackPolicy.threshold: {_shown(policy.threshold)} is no decimal; write it like 0.88"


def _aliases(entry: Entry) -> Iterator[str]:
    found = entry.spec.aliases or []
    if len(found) > ALIASES:
        yield f"spec.aliases: {len(found)} are too many; keep {ALIASES} or fewer"
    for alias in found:
        if not is_label_value(alias):
            allowed = "1 to 63 letters, digits, '-', '_', '.', a letter or digit at both ends"
            yield f"spec.aliases: {_shown(alias)} is no alias; use {allowed}"
    for alias in sorted({alias for alias in found if found.count(alias) > 1}):
        yield f"spec.aliases: {_shown(alias)} is listed twice; remove one"


def _shown(value: str) -> str:
    return json.dumps(value if len(value) <= 80 else value[:80] + "…", ensure_ascii=False)
