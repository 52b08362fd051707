"""The programs inside the examples do what their comments say, run here as plain processes with a pod's environment."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest

Examples = dict[str, list[dict[str, Any]]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def environment(template: dict[str, Any], **extra: str) -> dict[str, str]:
    own = {variable["name"]: variable["value"] for variable in template.get("env", []) if "value" in variable}
    return {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", **own, **extra}


def worker(template: dict[str, Any], rank: int, port: int) -> subprocess.Popen[str]:
    env = environment(
        template,
        RANK=str(rank),
        WORLD_SIZE="3",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        POD_IP="127.0.0.1",
    )
    command = [sys.executable, "-c", template["args"][0]]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)


def test_three_workers_of_the_indexed_example_agree_on_the_sum(example_files: Examples) -> None:
    spec = example_files["jobs/distributed-indexed.yaml"][0]["spec"]
    port = free_port()
    workers = [worker(spec, rank, port) for rank in (1, 2, 0)]
    lines = sorted(process.communicate(timeout=60)[0].strip() for process in workers)
    assert lines == ["rank 0 of 3: 1 -> 6", "rank 1 of 3: 2 -> 6", "rank 2 of 3: 3 -> 6"]
    assert [process.returncode for process in workers] == [0, 0, 0]


def test_a_lost_worker_of_the_statefulset_example_joins_the_next_round(example_files: Examples) -> None:
    spec = example_files["jobs/distributed-statefulset.yaml"][0]["spec"]
    spec = {**spec, "args": [spec["args"][0].replace("time.sleep(5)", "time.sleep(0.01)")]}
    port = free_port()
    with ExitStack() as running:
        workers = [start(running, spec, rank, port) for rank in range(3)]
        assert read_until(workers[0], "round 2:").endswith("1 -> 6")
        workers[2].kill()
        workers[2].wait(timeout=10)
        back = start(running, spec, 2, port)
        assert read_until(back, "round 2:").endswith("3 -> 6")


def start(running: ExitStack, spec: dict[str, Any], rank: int, port: int) -> subprocess.Popen[str]:
    process = worker(spec, rank, port)
    running.callback(process.communicate)
    running.callback(process.kill)
    return process


def read_until(process: subprocess.Popen[str], words: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if words in line:
            return line.strip()
    raise AssertionError(f"the worker ended without {words!r}")


TRIALS = {
    "ml-workflow/hyperparameter-tuning.yaml": {"learning_rate": "0.003", "alpha": "0.0001", "hidden": "64"}
    | {"batch_size": "32", "activation": "relu"},
    "ml-workflow/asha.yaml": {"learning_rate": "0.05", "momentum": "0.9", "hidden": "64"},
}


@pytest.mark.parametrize(("path", "least"), [(path, 0.85) for path in TRIALS])
def test_a_trial_of_the_tuning_examples_reports_its_objective_each_epoch(
    example_files: Examples, path: str, least: float
) -> None:
    spec = example_files[path][0]["spec"]
    assert {parameter["name"] for parameter in spec["parameterSpace"]} == TRIALS[path].keys()
    given = {f"HP_{name}": value for name, value in TRIALS[path].items()}
    env = environment(spec["jobTemplate"], **given) | {"EPOCHS": "3"}
    command = [sys.executable, *spec["jobTemplate"]["command"][1:], *spec["jobTemplate"]["args"]]
    output = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=True).stdout
    reports = [json.loads(re.sub(r"^[^{]*", "", line)) for line in output.splitlines() if "val_accuracy" in line]
    assert len(reports) == 3
    assert float(reports[-1][spec["objective"]["metricName"]]) > least
