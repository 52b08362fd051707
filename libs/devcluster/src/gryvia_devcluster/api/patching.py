"""The three patches that are a function of the object alone, chosen by media type."""

from __future__ import annotations

from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import json_patch, merge_patch, strategic_merge_patch
from gryvia_devcluster.types import Json, PatchType, ResourceType


def patched(live: Json, body: Any, patch_type: PatchType, builtin: ResourceType | None) -> Json:
    """The patched object. `builtin` is None for custom types, which know no strategic merge. Raises ApiError."""
    if patch_type == "application/json-patch+json":
        return json_patch(live, body)
    if patch_type == "application/merge-patch+json":
        return merge_patch(live, body)
    if builtin is None:
        raise ApiError(
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )
    return strategic_merge_patch(live, body, (builtin.group, builtin.kind))
