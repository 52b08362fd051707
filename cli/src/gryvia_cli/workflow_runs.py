"""The runs of a workflow: the one that the status is about, and the earlier ones that the service keeps."""

from __future__ import annotations

from gryvia_cli.editing import read
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.runs import run_name, run_of
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import is_controlled_by
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import CONFIG_MAPS, GROUP

KEPT = f"{GROUP}/component=workflow-run"


async def with_run(kube: Kube, namespace: str, name: str, run: int | None) -> Json:
    """The workflow with the status of that run, of the current one for None. Terminal when it is not kept (any more)."""
    obj = await read(kube, WORKFLOW, namespace, name)
    current = int((obj.get("status") or {}).get("run") or 0)
    if run is None or run == current:
        return obj
    try:
        kept = await kube.get(CONFIG_MAPS, namespace, run_name(name, run))
    except Gone as error:
        raise Terminal(
            f"run {run} of workflow {name} is not kept; the newest is {current}, `gryvia workflows runs {name}` lists those there are",
            reason="NotFound",
        ) from error
    return _with_status(obj, kept)


async def all_runs(kube: Kube, namespace: str, name: str) -> list[Json]:
    """The workflow once a run, with its status, newest first; none before the first has begun."""
    obj = await read(kube, WORKFLOW, namespace, name)
    kept = [
        _with_status(obj, one)
        for one in await kube.list(CONFIG_MAPS, namespace, labels=KEPT)
        if is_controlled_by(one, obj)
    ]
    current = [obj] if (obj.get("status") or {}).get("startTime") else []
    return sorted([*current, *kept], key=lambda one: -int(one["status"].get("run") or 0))


def _with_status(obj: Json, kept: Json) -> Json:
    try:
        return {**obj, "status": run_of(kept).wire()}
    except ValueError as error:
        raise Terminal(f"ConfigMap {kept['metadata']['name']} holds no run: {error}", reason="Run") from error
