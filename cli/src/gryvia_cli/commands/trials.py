"""`gryvia trials`: every trial of a study, the best one marked; the whole history, not only the window in the status."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from gryvia_cli.options import Output
from gryvia_cli.output import console, print_value, say, show
from gryvia_cli.session import Session
from gryvia_cli.trials_table import best_name, trials_table
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.autotuner import AUTO_TUNER, Trial
from gryvia_common.kinds.trials import TUNER_LABEL, history, trial_number, tuner_label
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def trials(session: Session, tuner: Annotated[str, typer.Argument(help="Name of the tuner.")]) -> int:
    """Show all trials of a study, the best one marked."""
    async with session.kube() as kube:
        obj, records = await read_trials(kube, session.place, tuner)
    if session.output in (Output.JSON, Output.YAML):
        best = best_name(obj)
        print_value([_as_json(record, best) for record in records], session.output)
        return 0
    out = console(color=session.color)
    if records:
        show(out, trials_table(obj, records, out.width))
    say(out, escape(progress_line(obj) + _message(obj)))
    return 0


async def read_trials(kube: Kube, namespace: str, tuner: str) -> tuple[Json, list[Trial]]:
    """The tuner and its whole history, by number. Terminal when there is no such tuner."""
    try:
        obj = await kube.get(AUTO_TUNER.resource, namespace, tuner)
    except Gone as error:
        raise Terminal(f"tuner {tuner} not found in namespace {namespace}", reason="NotFound") from error
    blocks = await kube.list(CONFIG_MAPS, namespace, labels=f"{TUNER_LABEL}={tuner_label(tuner)}")
    return obj, history(obj, blocks)


def _message(tuner: Json) -> str:
    message = (tuner.get("status") or {}).get("message")
    return f": {message}" if message else ""


def _as_json(record: Trial, best: str) -> Json:
    return {"number": trial_number(record.name), **record.wire(), "best": record.name == best}


def trials_done(tuner: Json) -> int:
    """Trials that have ended, one way or another."""
    state = tuner.get("status") or {}
    return int(state.get("trialsCompleted", 0)) + int(state.get("trialsFailed", 0))


def progress_line(tuner: Json) -> str:
    """`tuner hpo: Running, 12 of 30 trials done, 4 running, best 0.9722`."""
    state = tuner.get("status") or {}
    spec = tuner.get("spec") or {}
    best = (state.get("bestTrial") or {}).get("metricValue")
    parts = [
        f"tuner {metadata(tuner)['name']}: {state.get('phase', 'Pending')}",
        f"{trials_done(tuner)} of {spec.get('maxTrials', '?')} trials done",
        f"{state.get('trialsRunning', 0)} running",
    ]
    return ", ".join(parts + ([f"best {best:.4f}"] if best is not None else []))
