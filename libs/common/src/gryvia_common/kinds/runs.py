"""The earlier runs of a scheduled workflow, as service and command line share them: ConfigMaps `<workflow>-run-n<run>`.

The run in `status.run` is the status itself; each earlier one is the status as it was when the next began, as JSON.
"""

from __future__ import annotations

from gryvia_common.kinds.workflow import GryviaWorkflowStatus
from gryvia_common.kube.children import child_name
from gryvia_common.kube.objects import Json

RUN_KEY = "run.json"


def run_name(workflow: str, run: int) -> str:
    return child_name(workflow, "run", f"n{run}")


def encode_run(status: GryviaWorkflowStatus) -> str:
    return status.model_dump_json(by_alias=True, exclude_none=True)


def run_of(config_map: Json) -> GryviaWorkflowStatus:
    """ValueError when it holds no run."""
    text = (config_map.get("data") or {}).get(RUN_KEY)
    if not isinstance(text, str):
        raise ValueError(f"no {RUN_KEY} in the ConfigMap")
    return GryviaWorkflowStatus.model_validate_json(text)
