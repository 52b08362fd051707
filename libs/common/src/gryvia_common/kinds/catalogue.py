"""All kinds of the platform. Importing it imports every kind; a service imports the modules of its own kinds instead."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from gryvia_common.kinds.agent import AGENT
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.checkpointguard import CHECKPOINT_GUARD
from gryvia_common.kinds.dataset import DATASET
from gryvia_common.kinds.gpumemoryoptimizer import GPU_MEMORY_OPTIMIZER
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.liveexperiment import LIVE_EXPERIMENT
from gryvia_common.kinds.modellineage import MODEL_LINEAGE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.modelwatch import MODEL_WATCH
from gryvia_common.kinds.quota import QUOTA
from gryvia_common.kinds.trainingprofiler import TRAINING_PROFILER
from gryvia_common.kinds.trainingtimemachine import TRAINING_TIME_MACHINE
from gryvia_common.kinds.usagerecord import USAGE_RECORD
from gryvia_common.kinds.vectorindex import VECTOR_INDEX
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kinds.workspace import WORKSPACE

KINDS: tuple[Kind[Any, Any], ...] = (
    AI_JOB,
    AUTO_TUNER,
    WORKFLOW,
    MODEL_REGISTRY,
    INFERENCE_SERVICE,
    WORKSPACE,
    MODEL_WATCH,
    DATASET,
    VECTOR_INDEX,
    AGENT,
    CHECKPOINT_GUARD,
    TRAINING_TIME_MACHINE,
    LIVE_EXPERIMENT,
    TRAINING_PROFILER,
    MODEL_LINEAGE,
    GPU_MEMORY_OPTIMIZER,
    QUOTA,
    USAGE_RECORD,
)
"""In the order of the contract."""

BY_NAME: Mapping[str, Kind[Any, Any]] = MappingProxyType({kind.name: kind for kind in KINDS})
BY_PLURAL: Mapping[str, Kind[Any, Any]] = MappingProxyType({kind.plural: kind for kind in KINDS})
