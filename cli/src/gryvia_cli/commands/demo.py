"""`gryvia demo`: the platform, a real study on it from its first to its best trial, and what came of it.

Everything it does a user can do: it applies the example manifests through the API server and reads the objects back. With
--once it ends when the studies have; its exit code says whether every step succeeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from gryvia_cli.commands.platform import (
    DEFAULT_FOLDER,
    ImagesOption,
    PortOption,
    ProcessesOption,
    say_hello,
    signalled,
    started,
)
from gryvia_cli.commands.trials import best_name, progress_line, read_trials, trials_table
from gryvia_cli.manifests import read_manifests
from gryvia_cli.options import FolderOption
from gryvia_cli.platform.crds import connected
from gryvia_cli.platform.embedded import Platform, PlatformOptions
from gryvia_cli.platform.folder import PlatformFolder
from gryvia_cli.session import run
from gryvia_common.clock import SystemClock
from gryvia_common.errors import Terminal
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS

EXAMPLES = Path(__file__).parents[4] / "examples" / "ml-workflow"
STUDIES = ("hyperparameter-tuning.yaml", "asha.yaml")
RESOURCES = {AUTO_TUNER.name: AUTO_TUNER.resource, CONFIG_MAPS.kind: CONFIG_MAPS}
STUDY_SECONDS = 600.0
POLL_SECONDS = 0.5


def demo(
    folder: FolderOption = DEFAULT_FOLDER,
    once: Annotated[bool, typer.Option("--once", help="End when the studies have ended.")] = False,
    port: PortOption = 0,
    processes: ProcessesOption = False,
    images: ImagesOption = None,
) -> None:
    """Start the platform, run real studies on it, show how they go and what came of them."""
    options = PlatformOptions(PlatformFolder(folder.absolute()), port, processes=processes, images=images)

    async def work() -> int:
        out = Console(highlight=False)
        async with signalled() as stop, started(options, out) as platform:
            studies = asyncio.create_task(_run_studies(platform, out))
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait((studies, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not studies.done():
                studies.cancel()
                await asyncio.gather(studies, return_exceptions=True)
                out.print("stopped before the studies ended")
                return 1
            good = studies.result()
            if not once:
                say_hello(out, platform)
                await stopped
            stopped.cancel()
            return 0 if good else 1

    run(work)


async def _run_studies(platform: Platform, out: Console) -> bool:
    """Whether every study succeeded."""
    good = True
    async with connected(platform.kube, SystemClock()) as kube:
        for file in STUDIES:
            path = EXAMPLES / file
            tuner = await _apply(kube, read_manifests(path))
            out.print(f"\n[bold]{metadata(tuner)['name']}[/bold]  applied from {path.relative_to(EXAMPLES.parents[1])}")
            good &= await _watch_study(kube, tuner, out)
    return good


async def _apply(kube: Kube, manifests: Sequence[Json]) -> Json:
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
    said = ""
    with out.status(progress_line(tuner)) as live:
        while (phase := (tuner.get("status") or {}).get("phase")) not in ("Succeeded", "Failed"):
            if clock.monotonic() > deadline:
                out.print(f"[red]{name} has not ended after {STUDY_SECONDS:.0f} s[/red]")
                return False
            await asyncio.sleep(POLL_SECONDS)
            tuner = await kube.get(AUTO_TUNER.resource, namespace, name)
            line = progress_line(tuner)
            live.update(line)
            if line != said and not out.is_terminal:
                out.print(line, soft_wrap=True)
            said = line
    tuner, records = await read_trials(kube, namespace, name)
    out.print(trials_table(tuner, records))
    state = tuner["status"]
    best = state.get("bestTrial") or {}
    message = f": {state['message']}" if state.get("message") else ""
    out.print(f"{name} {phase}{message}", soft_wrap=True)
    if best_name(tuner):
        chosen = ", ".join(f"{key}={value}" for key, value in sorted(best["parameters"].items()))
        metric = tuner["spec"]["objective"]["metricName"]
        out.print(f"[bold green]best {metric} {best['metricValue']:.4f}[/bold green] with {chosen}", soft_wrap=True)
    return bool(phase == "Succeeded")
