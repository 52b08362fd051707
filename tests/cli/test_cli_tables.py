"""Tables that a person can read at 80 columns and at 200, and that a program can read at none."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from gryvia_cli.demonstration import stopped_early
from gryvia_cli.output import console, print_table, show
from gryvia_cli.tables import node_rows, object_rows, queue_rows
from gryvia_cli.trials_table import trials_table
from gryvia_common.kinds.autotuner import IntermediateMetric, Trial
from gryvia_common.kinds.liveexperiment import LIVE_EXPERIMENT
from gryvia_common.kinds.quota import QUOTA

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)
DIGITS = {
    "activation": "logistic",
    "alpha": "0.000648501",
    "batch_size": "64",
    "hidden": "48",
    "learning_rate": "0.00011",
}
TUNER: dict[str, Any] = {
    "metadata": {"name": "digits"},
    "spec": {"objective": {"metricName": "val_accuracy"}, "maxTrials": 3},
    "status": {"bestTrial": {"name": "digits-trial-1"}},
}


def trial(number: int, phase: str = "Succeeded", parameters: dict[str, str] | None = None, **more: Any) -> Trial:
    return Trial(
        name=f"digits-trial-{number}",
        parameters=parameters or DIGITS,
        phase=phase,  # type: ignore[arg-type]  # one of the phases
        start_time="2026-01-01T00:00:00Z",
        completion_time="2026-01-01T00:00:07Z",
        **more,
    )


REASON = "stopped at rung 3: val_accuracy 0.92 is not among the best 1 of 3 (needs 0.926667)"
STOPPED = trial(2, "Stopped", intermediate_metrics=[IntermediateMetric(step=3, value=0.92)], message=REASON)
RECORDS = [trial(0, metric_value=0.382222), trial(1, metric_value=0.986667), STOPPED]


def shown(records: list[Trial], width: int, terminal: bool = True) -> list[str]:
    file = StringIO()
    out = Console(file=file, width=width, force_terminal=terminal, no_color=True, highlight=False, _environ={})
    show(out, trials_table(TUNER, records, width))
    return file.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_trials_fit_the_terminal_and_nothing_is_lost(width: int) -> None:
    lines = shown(RECORDS, width)
    assert max(map(len, lines)) <= width
    text = " ".join("\n".join(lines).split())
    for word in ("logistic", "Succeeded", "Stopped", "0.986667", "(0.92)", "7s"):
        assert word in text
    assert " ".join(REASON.split()[-3:]) in text
    assert next(line for line in lines if line.startswith("*")).split()[1] == "1"


def test_a_wide_terminal_shows_one_line_a_trial_with_whole_numbers() -> None:
    lines = shown(RECORDS, 200)
    assert len(lines) == 4
    assert lines[1].split() == ["0", "logistic", "0.000648501", "64", "48", "0.00011", "0.382222", "Succeeded", "7s"]
    assert lines[3].endswith(REASON)


def test_eighty_columns_break_headers_and_tell_the_reasons_below() -> None:
    lines = shown(RECORDS, 80)
    assert any("learning_" in line for line in lines)
    assert " ".join(" ".join(lines[-2:]).split()) == f"trial 2: {REASON}"


def test_many_parameters_become_one_column_that_wraps() -> None:
    many = {f"parameter_{number}": "0.123456" for number in range(14)}
    lines = shown([trial(0, parameters=many, metric_value=0.5)], 80)
    assert max(map(len, lines)) <= 80
    assert all(f"parameter_{number}=0.1235" in "".join(lines).replace(" ", "") for number in range(14))


def test_brackets_in_a_message_are_shown_as_they_are() -> None:
    assert "no such file [data]" in shown([trial(0, "Failed", message="no such file [data]")], 200)[1]


def test_what_is_piped_has_no_trailing_blanks_and_no_colour() -> None:
    lines = shown(RECORDS, 250, terminal=False)
    assert len(lines) == 4
    assert all(line == line.rstrip() and "\x1b" not in line for line in lines)


@pytest.mark.parametrize("width", [80, 200])
def test_free_text_wraps_and_names_stay_whole(width: int) -> None:
    file = StringIO()
    out = Console(file=file, width=width, force_terminal=True, no_color=True, _environ={})
    print_table(out, ("NAME", "PHASE", "MESSAGE"), [("a-rather-long-name-of-a-job-0", "Pending", "no node fits " * 10)])
    lines = file.getvalue().splitlines()
    assert max(len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) for line in lines) <= width
    assert "a-rather-long-name-of-a-job-0" in file.getvalue()


def test_stopped_trials_are_told_by_epoch() -> None:
    nine = trial(5, "Stopped", intermediate_metrics=[IntermediateMetric(step=9, value=0.9)])
    three = trial(4, "Stopped", intermediate_metrics=[IntermediateMetric(step=3, value=0.9)])
    told = stopped_early([STOPPED, three, nine, trial(6, metric_value=1.0)])
    assert told == "stopped early, by what they had reported: trials 2 and 4 at epoch 3; trial 5 at epoch 9"
    assert stopped_early(RECORDS[:2]) == ""


def test_experiments_show_the_contracts_columns() -> None:
    experiment = {
        "metadata": {"name": "optimizers", "namespace": "team"},
        "spec": {"jobs": [{}, {}], "comparison": {"primaryMetric": "loss", "direction": "minimize"}},
        "status": {"phase": "Running", "leaderboard": [{"job": "adam", "primaryMetricValue": 0.25}]},
    }
    empty = {"metadata": {"name": "new"}, "spec": {}}
    headers, rows = object_rows(LIVE_EXPERIMENT, [experiment, empty], now=NOW, namespaced=False)
    assert headers == ["NAME", "METRIC", "DIRECTION", "JOBS", "LEADER", "BEST", "STATUS"]
    assert rows[0] == ["optimizers", "loss", "minimize", "2", "adam", "0.25", "Running"]
    assert rows[1] == ["new", "", "", "0", "", "", "Pending"]


def test_quotas_show_use_against_limit() -> None:
    quota = {
        "metadata": {"name": "vision"},
        "spec": {
            "team": "vision",
            "namespaces": ["a", "b"],
            "gpuQuota": {"maxGPUs": 16},
            "budget": {"monthlyBudget": 1000},
            "tokensPerDay": 2_000_000,
        },
        "status": {
            "phase": "Active",
            "currentUsage": {"allocatedGPUs": 3, "runningJobs": 2, "queuedJobs": 0, "gpuHours": 1.5},
            "budgetStatus": {"spentThisMonth": 12.5},
        },
    }
    headers, rows = object_rows(QUOTA, [quota], now=NOW, namespaced=False)
    assert dict(zip(headers, rows[0], strict=True)) == {
        "NAME": "vision",
        "TEAM": "vision",
        "NAMESPACES": "a,b",
        "GPUS": "3/16",
        "JOBS": "2/-",
        "GPU-HOURS": "1.5",
        "SPENT": "12.5/1000",
        "TOKENS/DAY": "2000000",
        "PHASE": "Active",
    }


def test_nodes_and_the_queue() -> None:
    made = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    node = {
        "metadata": {"name": "n", "labels": {"gryvia.io/gpu": "H100"}, **made},
        "spec": {"unschedulable": True},
        "status": {
            "capacity": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    assert node_rows([node], NOW)[1] == [["n", "Ready,SchedulingDisabled", "8", "64Gi", "4", "H100", "5m"]]
    job = {"metadata": {"name": "j", **made}, "spec": {"gpus": 2, "priority": 7}, "status": {"message": "no node fits"}}
    assert queue_rows([job], NOW)[1] == [["1", "j", "7", "2", "", "Pending", "5m", "no node fits"]]


def test_a_long_message_takes_no_room_from_names_where_output_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(console(color=False), ["NAME", "PHASE", "MESSAGE"], [["a-name", "Failed", "word " * 200]])
    header, row = capsys.readouterr().out.splitlines()
    assert header == "NAME    PHASE   MESSAGE"
    assert row == f"a-name  Failed  {'word ' * 200}".rstrip()
