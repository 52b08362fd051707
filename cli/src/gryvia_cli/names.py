"""The words people use for kinds on the command line."""

from __future__ import annotations

from typing import Any

from gryvia_common.errors import Terminal
from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kinds.kind import Kind

WORDS = {
    "job": "GryviaAIJob",
    "tuner": "GryviaAutoTuner",
    "workflow": "GryviaWorkflow",
    "model": "GryviaModelRegistry",
    "inference": "GryviaInferenceService",
    "workspace": "GryviaWorkspace",
    "watch": "GryviaModelWatch",
    "dataset": "GryviaDataset",
    "index": "GryviaVectorIndex",
    "agent": "GryviaAgent",
    "guard": "GryviaCheckpointGuard",
    "timemachine": "GryviaTrainingTimeMachine",
    "experiment": "GryviaLiveExperiment",
    "profiler": "GryviaTrainingProfiler",
    "lineage": "GryviaModelLineage",
    "optimizer": "GryviaGpuMemoryOptimizer",
    "quota": "GryviaQuota",
    "usage": "GryviaUsageRecord",
}
NODE_WORDS = ("node", "nodes", "no")
_PLURALS = {"index": "indexes", "inference": "inference", "lineage": "lineage", "usage": "usage", "watch": "watches"}


def plural(word: str) -> str:
    return _PLURALS.get(word, f"{word}s")


def kind_of(text: str) -> Kind[Any, Any]:
    """By word (`job`, `jobs`), kind, plural or short name. Terminal names the words there are."""
    wanted = text.lower()
    by_name = {kind.name: kind for kind in KINDS}
    for word, name in WORDS.items():
        if wanted in (word, plural(word)):
            return by_name[name]
    for kind in KINDS:
        if wanted in (kind.name.lower(), kind.plural, *kind.short_names):
            return kind
    raise Terminal(
        f"unknown kind {text!r}; there are {', '.join(plural(word) for word in WORDS)}, nodes", reason="Usage"
    )


def words_of(name: str) -> str:
    """What people call the objects of the kind `name`, in the plural."""
    return next((plural(word) for word, kind in WORDS.items() if kind == name), f"{name.lower()}s")


def word_of(name: str) -> str:
    """What people call one object of the kind `name`."""
    return next((word for word, kind in WORDS.items() if kind == name), name.lower())
