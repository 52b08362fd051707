"""`gryvia demo`: the platform, real studies on it from their first to their best trial, then a pipeline that ends with a model in
production.

Everything it does a user can do: it applies the example manifests through the API server and reads the objects back. With
--once it ends when the pipeline has; its exit code says whether every step succeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from gryvia_cli.commands.trials import progress_line, read_trials, trials_done
from gryvia_cli.demo_pipeline import watch_pipeline
from gryvia_cli.manifests import read_manifests
from gryvia_cli.output import say, show
from gryvia_cli.platform.crds import connected
from gryvia_cli.platform.embedded import Platform, PlatformOptions
from gryvia_cli.platform.foreground import say_hello, signalled, started
from gryvia_cli.session import INTERRUPTED
from gryvia_cli.study_progress import StudyProgress
from gryvia_cli.trials_table import best_name, trials_table
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Terminal
from gryvia_common.kinds.autotuner import AUTO_TUNER, Trial
from gryvia_common.kinds.trials import trial_number
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, PVCS

EXAMPLES = Path(__file__).parents[3] / "examples" / "ml-workflow"
STUDIES = ("hyperparameter-tuning.yaml", "asha.yaml")
PIPELINE = "training-pipeline.yaml"
RESOURCES = {
    AUTO_TUNER.name: AUTO_TUNER.resource,
    WORKFLOW.name: WORKFLOW.resource,
    CONFIG_MAPS.kind: CONFIG_MAPS,
    PVCS.kind: PVCS,
}
STUDY_SECONDS = 600.0
POLL_SECONDS = 0.5


async def demonstrate(options: PlatformOptions, out: Console, *, once: bool) -> int:
    """The exit code."""
    async with signalled() as stop, started(options, out, stop) as platform:
        return INTERRUPTED if platform is None else await _demonstrate(platform, out, stop, once=once)


async def _demonstrate(platform: Platform, out: Console, stop: asyncio.Event, *, once: bool) -> int:
    show = asyncio.create_task(_run(platform, out))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((show, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not show.done():
            show.cancel()
            await asyncio.gather(show, return_exceptions=True)
            out.print("stopped before the demo ended")
            return INTERRUPTED
        good = show.result()
        if not once:
            say_hello(out, platform)
            await stopped
            out.print("stopping")
        return 0 if good else 1
    finally:
        stopped.cancel()


async def _run(platform: Platform, out: Console) -> bool:
    """Whether everything succeeded."""
    good = True
    async with connected(platform.kube, SystemClock()) as kube:
        for file in STUDIES:
            good &= await _watch_study(kube, await _applied(kube, file, AUTO_TUNER.name, out), out)
        good &= await watch_pipeline(platform, kube, await _applied(kube, PIPELINE, WORKFLOW.name, out), out)
    return good


async def _applied(kube: Kube, file: str, kind: str, out: Console) -> Json:
    """The object of this kind in the example, applied with what is beside it."""
    path = EXAMPLES / file
    obj = await apply_example(kube, read_manifests(path), kind)
    out.print(f"\n[bold]{metadata(obj)['name']}[/bold]  applied from {path.relative_to(EXAMPLES.parents[1])}")
    return obj


async def apply_example(kube: Kube, manifests: Sequence[Json], kind: str = AUTO_TUNER.name) -> Json:
    """Apply an example's manifests; the one of this kind among them."""
    found: Json | None = None
    for manifest in manifests:
        metadata(manifest).setdefault("namespace", "default")
        resource = RESOURCES.get(manifest["kind"])
        if resource is None:
            raise Terminal(f"the demo does not know how to apply a {manifest['kind']}", reason="Demo")
        applied = await kube.apply(resource, manifest, manager="gryvia-demo")
        if manifest["kind"] == kind:
            found = applied
    if found is None:
        raise Terminal(f"the example holds no {kind}", reason="Demo")
    return found


async def _watch_study(kube: Kube, tuner: Json, out: Console) -> bool:
    """Live progress until the study ends, then its trials and the best one."""
    clock = SystemClock()
    namespace, name = metadata(tuner)["namespace"], metadata(tuner)["name"]
    deadline = clock.monotonic() + STUDY_SECONDS
    with StudyProgress(out, int(tuner["spec"]["maxTrials"])) as progress:
        while (phase := (tuner.get("status") or {}).get("phase")) not in ("Succeeded", "Failed"):
            if clock.monotonic() > deadline:
                out.print(f"[red]{name} has not ended after {STUDY_SECONDS:.0f} s[/red]")
                return False
            await asyncio.sleep(POLL_SECONDS)
            tuner = await kube.get(AUTO_TUNER.resource, namespace, name)
            progress.show(trials_done(tuner), progress_line(tuner))
    tuner, records = await read_trials(kube, namespace, name)
    _say_result(tuner, records, out)
    return bool(phase == "Succeeded")


def _say_result(tuner: Json, records: Sequence[Trial], out: Console) -> None:
    state = tuner["status"]
    show(out, trials_table(tuner, records, out.width))
    if early := stopped_early(records):
        say(out, early)
    message = f": {escape(state['message'])}" if state.get("message") else ""
    say(out, f"{metadata(tuner)['name']} {state['phase']}{message}")
    if best_name(tuner):
        best = state["bestTrial"]
        chosen = ", ".join(f"{key}={value}" for key, value in sorted(best["parameters"].items()))
        metric = tuner["spec"]["objective"]["metricName"]
        say(out, f"[bold green]best {metric} {best['metricValue']:.4f}[/bold green] with {chosen}")


def stopped_early(records: Sequence[Trial]) -> str:
    """`stopped early, by what they had reported: trials 0, 3 and 4 at epoch 3; trial 1 at epoch 9`; empty when none was."""
    by_epoch: dict[int, list[str]] = {}
    for record in records:
        if record.phase == "Stopped" and record.intermediate_metrics:
            by_epoch.setdefault(record.intermediate_metrics[-1].step, []).append(str(trial_number(record.name)))
    parts = [f"{_trials(names)} at epoch {epoch}" for epoch, names in sorted(by_epoch.items())]
    return f"stopped early, by what they had reported: {'; '.join(parts)}" if parts else ""


def _trials(names: Sequence[str]) -> str:
    *first, last = names
    return f"trials {', '.join(first)} and {last}" if first else f"trial {last}"
