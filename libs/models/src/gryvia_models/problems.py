"""What is wrong with a registry entry, and what of it has no effect: pure sentences that name field, value and fix.

Also by part, because a workflow's register step has the same parts; `where` is the path of the part in the spec they stand in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from gryvia_common.kinds.modelregistry import (
    GryviaModelRegistrySpec,
    ModelArtifacts,
    PromotionPolicy,
    RollbackPolicy,
    ServingConfig,
)
from gryvia_common.kube.names import is_label_value, is_service_name, is_subdomain
from gryvia_common.numbers import parse_decimal

FORMATS = ("pytorch", "onnx", "tensorrt", "safetensors", "other")
ALIASES = 20
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*")
_ALIAS = "1 to 63 letters, digits, '-', '_', '.', a letter or digit at both ends"


def of_entry(spec: GryviaModelRegistrySpec) -> Iterator[str]:
    yield from of_name("spec.modelName", spec.model_name)
    yield from of_name("spec.version", spec.version)
    yield from of_artifacts("spec.artifacts", spec.artifacts)
    for field, name in (spec.source.wire() if spec.source else {}).items():
        if not is_subdomain(name):
            yield f"spec.source.{field}: {shown(name)} cannot name an object; use its metadata.name, or leave it out"
    if spec.serving_config is not None:
        yield from of_serving("spec.servingConfig", spec.serving_config)
    if spec.promotion_policy is not None:
        yield from of_promotion("spec.promotionPolicy", spec.promotion_policy)
    if spec.rollback_policy is not None:
        yield from of_rollback("spec.rollbackPolicy", spec.rollback_policy)
    yield from of_aliases("spec.aliases", spec.aliases or [])


def without_effect(spec: GryviaModelRegistrySpec) -> Iterator[str]:
    config = spec.serving_config
    if config is not None and not spec.auto_serve:
        yield "spec.servingConfig: spec.autoServe is false"
    elif config is not None and not config.service_name:
        for field, wire in (("canary_weight", "canaryWeight"), ("promote_after_seconds", "promoteAfterSeconds")):
            if field in config.model_fields_set:
                yield f"spec.servingConfig.{wire}: needs spec.servingConfig.serviceName"
    if spec.promotion_policy is not None and spec.stage in (None, "dev"):
        yield "spec.promotionPolicy: it is looked at in stage staging; set spec.stage to staging"


def of_name(where: str, text: str) -> Iterator[str]:
    """Of a model or a version."""
    if not text or text != text.strip() or len(text) > 253 or not text.isprintable():
        yield f"{where}: {shown(text)} is no name; use 1 to 253 characters, without spaces around them"


def of_artifacts(where: str, artifacts: ModelArtifacts) -> Iterator[str]:
    if not artifacts.s3_path and not artifacts.pvc_name:
        yield f"{where}: neither s3Path nor pvcName is set; say where the files are"
    if artifacts.s3_path and _URI.fullmatch(artifacts.s3_path) is None:
        yield f"{where}.s3Path: {shown(artifacts.s3_path)} is no URI; write it like s3://bucket/path"
    if artifacts.pvc_name and not is_subdomain(artifacts.pvc_name):
        yield f"{where}.pvcName: {shown(artifacts.pvc_name)} cannot name a claim; use its metadata.name"
    path = artifacts.sub_path or ""
    if path.startswith("/") or ".." in path.split("/"):
        yield f"{where}.subPath: {shown(path)} leads out of the volume; write a relative path without '..'"
    if artifacts.format is not None and artifacts.format not in FORMATS:
        yield f"{where}.format: {shown(artifacts.format)} is unknown; use one of {', '.join(FORMATS)}"
    if artifacts.size_bytes is not None and artifacts.size_bytes < 0:
        yield f"{where}.sizeBytes: {artifacts.size_bytes} is negative; set it to 0 or more, or leave it out"


def of_serving(where: str, config: ServingConfig) -> Iterator[str]:
    counts = {
        "replicas": config.replicas,
        "gpuCount": config.gpu_count,
        "promoteAfterSeconds": config.promote_after_seconds,
    }
    for field, value in counts.items():
        if value is not None and value < 0:
            yield f"{where}.{field}: {value} is negative; set it to 0 or more"
    if not 0 <= config.canary_weight <= 100:
        yield f"{where}.canaryWeight: {config.canary_weight} is no percentage; set it to 0 to 100"
    if config.gpu_type and not is_label_value(config.gpu_type):
        yield f"{where}.gpuType: {shown(config.gpu_type)} cannot be the value of a node label; use letters, digits, '-', '_', '.'"
    if config.service_name and not is_service_name(config.service_name):
        yield f"{where}.serviceName: {shown(config.service_name)} cannot name a service; use lower-case letters, digits and '-'"


def of_promotion(where: str, policy: PromotionPolicy) -> Iterator[str]:
    if not policy.metric:
        yield f'{where}.metric: "" is no key; name the key of the metadata to compare'
    least = parse_decimal(policy.min_delta)
    if least is None or least < 0:
        yield f"{where}.minDelta: {shown(policy.min_delta)} is no decimal of 0 or more; write it like 0.002, or leave it out"
    if policy.threshold is not None and parse_decimal(policy.threshold) is None:
        yield f"{where}.threshold: {shown(policy.threshold)} is no decimal; write it like 0.9, or leave it out"
    if policy.stderr_metric is not None and policy.stderr_metric in ("", policy.metric):
        yield f"{where}.stderrMetric: {shown(policy.stderr_metric)} is no key of its own; name the one of the standard error"


def of_rollback(where: str, policy: RollbackPolicy) -> Iterator[str]:
    if not policy.metric:
        yield f'{where}.metric: "" is no key; name the key of the metadata to watch'
    if parse_decimal(policy.threshold) is None:
        yield f"{where}.threshold: {shown(policy.threshold)} is no decimal; write it like 0.88"


def of_aliases(where: str, aliases: Sequence[str]) -> Iterator[str]:
    if len(aliases) > ALIASES:
        yield f"{where}: {len(aliases)} are too many; keep {ALIASES} or fewer"
    for alias in aliases:
        if not is_label_value(alias):
            yield f"{where}: {shown(alias)} is no alias; use {_ALIAS}"
    for alias in sorted({alias for alias in aliases if aliases.count(alias) > 1}):
        yield f"{where}: {shown(alias)} is listed twice; remove one"


def shown(value: str) -> str:
    return json.dumps(value if len(value) <= 80 else value[:80] + "…", ensure_ascii=False)
