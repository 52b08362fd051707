"""`gryvia trials`: every trial of a study, the best one marked; the whole history, not only the window in the status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from gryvia_cli.options import ContextOption, NamespaceOption, Output, OutputOption
from gryvia_cli.output import console, duration, print_value
from gryvia_cli.session import Session, run
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.autotuner import AUTO_TUNER, Trial
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.trials import TUNER_LABEL, history, trial_number, tuner_label
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import CONFIG_MAPS


def trials(
    context: typer.Context,
    tuner: Annotated[str, typer.Argument(help="Name of the tuner.")],
    namespace: NamespaceOption = "default",
    output: OutputOption = Output.TABLE,
    kube_context: ContextOption = None,
) -> None:
    """Show all trials of a study."""
    session: Session = context.obj

    async def work() -> int:
        async with session.kube(kube_context) as kube:
            obj, records = await read_trials(kube, namespace, tuner)
        best = best_name(obj)
        if output == Output.TABLE:
            console(color=session.color).print(trials_table(obj, records))
        else:
            print_value([_as_json(record, best) for record in records], output)
        return 0

    run(work)


async def read_trials(kube: Kube, namespace: str, tuner: str) -> tuple[Json, list[Trial]]:
    """The tuner and its whole history, by number. Terminal when there is no such tuner."""
    try:
        obj = await kube.get(AUTO_TUNER.resource, namespace, tuner)
    except Gone as error:
        raise Terminal(f"tuner {tuner} not found in namespace {namespace}", reason="NotFound") from error
    blocks = await kube.list(CONFIG_MAPS, namespace, labels=f"{TUNER_LABEL}={tuner_label(tuner)}")
    return obj, history(obj, blocks)


def best_name(tuner: Json) -> str:
    """Empty while no trial has a value."""
    return str(((tuner.get("status") or {}).get("bestTrial") or {}).get("name") or "")


def trials_table(tuner: Json, records: Sequence[Trial]) -> Table:
    """One row a trial, in order; `*` marks the best."""
    names = sorted({name for record in records for name in record.parameters})
    metric = ((tuner.get("spec") or {}).get("objective") or {}).get("metricName", "metric")
    best = best_name(tuner)
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for header in ("", "TRIAL", *names, metric, "PHASE", "TIME", "MESSAGE"):
        table.add_column(header)
    for record in records:
        style = "bold green" if record.name == best else {"Failed": "red", "Stopped": "yellow"}.get(record.phase, "")
        table.add_row(
            "*" if record.name == best else "",
            str(trial_number(record.name)),
            *(record.parameters.get(name, "") for name in names),
            "" if record.metric_value is None else f"{record.metric_value:.6g}",
            record.phase,
            _time(record),
            record.message or "",
            style=style,
        )
    return table


def _time(record: Trial) -> str:
    if not record.start_time or not record.completion_time:
        return ""
    return duration(int((parse_timestamp(record.completion_time) - parse_timestamp(record.start_time)).total_seconds()))


def _as_json(record: Trial, best: str) -> Json:
    return {"number": trial_number(record.name), **record.wire(), "best": record.name == best}


def progress_line(tuner: Json) -> str:
    """`tuner hpo: Running, 12 of 30 trials done, 4 running, best 0.9722`."""
    state = tuner.get("status") or {}
    spec = tuner.get("spec") or {}
    done = state.get("trialsCompleted", 0) + state.get("trialsFailed", 0)
    best = (state.get("bestTrial") or {}).get("metricValue")
    parts = [
        f"tuner {metadata(tuner)['name']}: {state.get('phase', 'Pending')}",
        f"{done} of {spec.get('maxTrials', '?')} trials done",
        f"{state.get('trialsRunning', 0)} running",
    ]
    return ", ".join(parts + ([f"best {best:.4f}"] if best is not None else []))
