"""Outputs: what a child reported, and where it is kept.

Read from the termination message (a JSON object) and from annotations `gryvia.io/output-<key>`, which win. Texts are kept,
numbers and booleans formatted; everything else is left out and named. Kept in the status when short; else the status has the
beginning and a ConfigMap the whole, because 100 steps with 32 outputs of 4 kB are 13 MB and an object may have 1.5.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.objects import Json
from gryvia_common.kube.pods import result
from gryvia_common.kube.resources import CONFIG_MAPS, GROUP
from gryvia_common.runtime.plan import Apply
from gryvia_workflow.run import Task, Workflow, child_of, cut

ANNOTATION = f"{GROUP}/output-"
MOST = 32
LONGEST = 4096
INLINE, ITEM_INLINE = 400, 80
PREVIEW = 60
COLLECTED = 900_000
"""Bytes of the collected outputs of a step with withItems that get a ConfigMap of their own; they follow from the items' anyway."""
_KEY = re.compile(r"[A-Za-z0-9_-]{1,63}")


class Cut(Exception):
    """The termination message was cut: nothing of it can be relied upon."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The outputs, and a sentence about what was left out."""

    values: Mapping[str, str]
    left_out: str = ""


def reported(message: str, annotations: Mapping[str, str]) -> Reported:
    """Raises Cut."""
    found, note = result(message)
    if note:
        raise Cut(note)
    left_out: list[str] = []
    if not found and message.strip().startswith("{") and message.strip() != "{}":
        left_out.append("the termination message is no JSON object")
    said: dict[str, Any] = {
        key[len(ANNOTATION) :]: text for key, text in annotations.items() if key.startswith(ANNOTATION)
    }
    said |= {key: value for key, value in found.items() if key not in said}
    values: dict[str, str] = {}
    for key, value in said.items():
        text, why = _text(key, value)
        if not why and len(values) == MOST:
            why = f"only {MOST} outputs are taken"
        if why:
            left_out.append(f"{key[:63]}: {why}")
        else:
            values[key] = text
    return Reported(values, f"outputs left out: {'; '.join(left_out)}" if left_out else "")


def kept(
    workflow: Workflow, run: int, task: Task, values: Mapping[str, str]
) -> tuple[Mapping[str, str], str, tuple[Apply, ...]]:
    """What of the outputs stands in the status, the name of the ConfigMap with all of them, and that ConfigMap."""
    budget = INLINE if task.index is None else ITEM_INLINE
    if _size(values) <= budget:
        return dict(values), "", ()
    shown: dict[str, str] = {}
    for key, value in values.items():
        short = cut(value, min(PREVIEW, budget // 2))
        if _size(shown) + _size({key: short}) > budget:
            break
        shown[key] = short
    if sum(len(key) + len(value.encode()) for key, value in values.items()) > COLLECTED:
        return shown, "", ()
    name = child_of(workflow, run, task, "outputs")
    labels = {f"{GROUP}/component": "workflow-outputs", f"{GROUP}/run": str(run)}
    meta = owned_metadata(workflow.raw, WORKFLOW.resource, name, labels)
    manifest: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(values)}
    return shown, name, (Apply(CONFIG_MAPS, manifest, create_only=True),)


def collected(items: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Of a step with withItems: for each key a JSON list, in the order of the items, null where an item has none."""
    found = list(items)
    keys = sorted({key for one in found for key in one})
    return {key: json.dumps([one.get(key) for one in found], ensure_ascii=False) for key in keys}


def _text(key: str, value: Any) -> tuple[str, str]:
    """The value as text, or why it is none."""
    if _KEY.fullmatch(key) is None:
        return "", "a key has letters, digits, '_' and '-', 63 at most"
    if isinstance(value, bool):
        return str(value).lower(), ""
    if isinstance(value, float) and not math.isfinite(value):
        return "", f"{value} is not a finite number"
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str):
        return "", f"{json.dumps(value)[:40]} is neither text nor number; write it as a JSON text"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "", "the text is no valid Unicode"
    return (value, "") if size <= LONGEST else ("", f"{size} bytes, {LONGEST} are taken")


def _size(values: Mapping[str, str]) -> int:
    """Bytes in the status."""
    return sum(len(json.dumps(text, ensure_ascii=False).encode()) + 2 for pair in values.items() for text in pair)
