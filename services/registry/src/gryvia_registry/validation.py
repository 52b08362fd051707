"""What is wrong with an entry's spec, and what of it has no effect.

An entry whose spec is wrong is Failed and asks for nothing, neither production nor an alias, until it is mended; one that is in
production stays there.
"""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_common.kube.names import is_subdomain
from gryvia_models import problems as wrong
from gryvia_registry.entry import Entry


def problems(entry: Entry) -> Iterator[str]:
    spec = entry.spec
    yield from wrong.of_name("spec.modelName", spec.model_name)
    yield from wrong.of_name("spec.version", spec.version)
    yield from wrong.of_artifacts("spec.artifacts", spec.artifacts)
    for field, name in (spec.source.wire() if spec.source else {}).items():
        if not is_subdomain(name):
            yield f"spec.source.{field}: {wrong.shown(name)} cannot name an object; use its metadata.name, or leave it out"
    if spec.serving_config is not None:
        yield from wrong.of_serving("spec.servingConfig", spec.serving_config)
    if spec.promotion_policy is not None:
        yield from wrong.of_promotion("spec.promotionPolicy", spec.promotion_policy)
    if spec.rollback_policy is not None:
        yield from wrong.of_rollback("spec.rollbackPolicy", spec.rollback_policy)
    yield from wrong.of_aliases("spec.aliases", spec.aliases or [])


def without_effect(entry: Entry) -> Iterator[str]:
    spec, config = entry.spec, entry.spec.serving_config
    if config is not None and not spec.auto_serve:
        yield "spec.servingConfig: spec.autoServe is false"
    elif config is not None and not config.service_name:
        for field, wire in (("canary_weight", "canaryWeight"), ("promote_after_seconds", "promoteAfterSeconds")):
            if field in config.model_fields_set:
                yield f"spec.servingConfig.{wire}: needs spec.servingConfig.serviceName"
    if spec.promotion_policy is not None and spec.stage in (None, "dev"):
        yield "spec.promotionPolicy: it is looked at in stage staging; set spec.stage to staging"
