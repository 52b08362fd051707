"""`gryvia demo`: the platform, real studies on it from their first to their best trial, and what came of them.

Everything it does a user can do: it applies the example manifests through the API server and reads the objects back. With
--once it ends when the studies have; its exit code says whether every step succeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from gryvia_cli.commands.trials import progress_line, read_trials, trials_done
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
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS

EXAMPLES = Path(__file__).parents[3] / "examples" / "ml-workflow"
STUDIES = ("hyperparameter-tuning.yaml", "asha.yaml")
RESOURCES = {AUTO_TUNER.name: AUTO_TUNER.resource, CONFIG_MAPS.kind: CONFIG_MAPS}
STUDY_SECONDS = 600.0
POLL_SECONDS = 0.5


async def demonstrate(options: PlatformOptions, out: Console, *, once: bool) -> int:
    """The exit code."""
    async with signalled() as stop, started(options, out, stop) as platform:
        return INTERRUPTED if platform is None else await _demonstrate(platform, out, stop, once=once)


async def _demonstrate(platform: Platform, out: Console, stop: asyncio.Event, *, once: bool) -> int:
    studies = asyncio.create_task(run_studies(platform, out))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((studies, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not studies.done():
            studies.cancel()
            await asyncio.gather(studies, return_exceptions=True)
            out.print("stopped before the studies ended")
            return INTERRUPTED
        good = studies.result()
        if not once:
            say_hello(out, platform)
            await stopped
            out.print("stopping")
        return 0 if good else 1
    finally:
        stopped.cancel()


async def run_studies(platform: Platform, out: Console, files: Sequence[str] = STUDIES) -> bool:
    """Whether every study succeeded."""
    good = True
    async with connected(platform.kube, SystemClock()) as kube:
        for file in files:
            path = EXAMPLES / file
            tuner = await apply_study(kube, read_manifests(path))
            out.print(f"\n[bold]{metadata(tuner)['name']}[/bold]  applied from {path.relative_to(EXAMPLES.parents[1])}")
            good &= await _watch_study(kube, tuner, out)
    return good


async def apply_study(kube: Kube, manifests: Sequence[Json]) -> Json:
    """Apply a study's manifests; the tuner among them."""
    tuner: Json | None = None
    for manifest in manifests:
        metadata(manifest).setdefault("namespace", "default")
        resource = RESOURCES.get(manifest["kind"])
        if resource is None:
            raise Terminal(f"the demo does not know how to apply a {manifest['kind']}", reason="Demo")
        applied = await kube.apply(resource, manifest, manager="gryvia-demo")
        if manifest["kind"] == AUTO_TUNER.name:
            tuner = applied
    if tuner is None:
        raise Terminal(f"the study holds no {AUTO_TUNER.name}", reason="Demo")
    return tuner


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
