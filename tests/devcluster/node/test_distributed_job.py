"""Workers of an Indexed Job find each other by the names of a headless service."""

from __future__ import annotations

from typing import Any

WORKER = """
import json, os, socket, time
rank, world = int(os.environ["JOB_COMPLETION_INDEX"]), 3
address = (os.environ["MASTER_ADDR"], 29500)
if rank == 0:
    server = socket.create_server(("", 29500))
    total = 0
    for _ in range(world - 1):
        connection, _ = server.accept()
        total += int(connection.makefile().readline())
    open("/dev/termination-log", "w").write(json.dumps({"total": total, "host": socket.gethostname()}))
else:
    while True:
        try:
            connection = socket.create_connection(address)
            break
        except OSError:
            time.sleep(0.02)
    connection.sendall(f"{rank * 10}\\n".encode())
"""


async def test_three_workers_reduce_over_a_headless_service(machine: Any) -> None:
    machine.create(
        "services",
        {
            "metadata": {"name": "train-headless"},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": {"job-name": "train"},
                "ports": [{"port": 29500}],
            },
        },
    )
    container = {
        "name": "main",
        "image": "python:3.12",
        "command": ["python", "-c", WORKER],
        "env": [{"name": "MASTER_ADDR", "value": "train-0.train-headless.default.svc.cluster.local"}],
    }
    spec = {"restartPolicy": "Never", "subdomain": "train-headless", "containers": [container]}
    job = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "template": {"spec": spec}}
    machine.create("jobs", {"metadata": {"name": "train"}, "spec": job})
    await machine.until(
        "jobs", "train", lambda j: any(c["type"] == "Complete" for c in j["status"].get("conditions", ()))
    )
    rank = "batch.kubernetes.io/job-completion-index=0"
    (first,) = machine.all("pods", labels=rank)
    assert first["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == (
        '{"total": 30, "host": "train-0"}'
    )
