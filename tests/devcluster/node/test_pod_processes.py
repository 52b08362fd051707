"""What a program in a pod sees, and what the API says of how it ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

Json = dict[str, Any]


def ended(pod: Json, container: str = "main") -> Json:
    groups = [*pod["status"]["containerStatuses"], *pod["status"].get("initContainerStatuses", ())]
    return next(s for s in groups if s["name"] == container)["state"]["terminated"]


async def test_a_program_runs_and_its_output_is_the_log(machine: Any) -> None:
    machine.pod("hello", "import sys; print('out'); print('err', file=sys.stderr)")
    pod = await machine.phase("hello", "Succeeded", "Failed")
    assert pod["status"]["phase"] == "Succeeded"
    assert ended(pod)["exitCode"] == 0
    assert ended(pod)["reason"] == "Completed"
    assert machine.log(pod) == "out\nerr\n"
    assert machine.reasons("hello") == {"Scheduled", "Pulled", "Created", "Started"}
    conditions = {c["type"]: (c["status"], c.get("reason")) for c in pod["status"]["conditions"]}
    assert conditions["Ready"] == ("False", "PodCompleted")
    assert conditions["PodScheduled"] == ("True", None)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 15)", 143),
    ],
)
async def test_exit_codes_and_signals_are_reported_as_a_container_runtime_does(
    machine: Any, code: str, expected: int
) -> None:
    machine.pod("fails", code)
    pod = await machine.phase("fails", "Failed")
    assert ended(pod)["exitCode"] == expected
    assert ended(pod)["reason"] == "Error"


async def test_a_program_that_does_not_exist_is_a_start_error(machine: Any) -> None:
    machine.pod("nothing", main={"command": ["no-such-program"]})
    pod = await machine.phase("nothing", "Failed")
    assert ended(pod)["exitCode"] == 128
    assert ended(pod)["reason"] == "StartError"
    assert '"no-such-program": executable file not found in $PATH' in ended(pod)["message"]


async def test_the_environment_is_the_containers_and_not_the_hosts(machine: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOST_SECRET", "hunter2")
    machine.create("configmaps", {"metadata": {"name": "conf"}, "data": {"LEVEL": "info", "lr": "0.1"}})
    machine.create("secrets", {"metadata": {"name": "key"}, "stringData": {"token": "t0ken"}})
    env = [
        {"name": "PLAIN", "value": "a"},
        {"name": "COMBINED", "value": "$(PLAIN)-$(LR)-$(NONE)-$$(PLAIN)"},
        {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "lr"}}},
        {"name": "AFTER", "value": "$(LR)"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ]
    machine.pod(
        "env",
        "import json, os; print(json.dumps(dict(os.environ)))",
        main={
            "env": env,
            "envFrom": [{"configMapRef": {"name": "conf"}, "prefix": "C_"}],
            "resources": {"limits": {"cpu": "1500m"}},
        },
    )
    pod = await machine.phase("env", "Succeeded", "Failed")
    seen = json.loads(machine.log(pod))
    assert seen["COMBINED"] == "a-$(LR)-$(NONE)-$(PLAIN)"
    assert (seen["LR"], seen["AFTER"], seen["TOKEN"]) == ("0.1", "0.1", "t0ken")
    assert (seen["NAME"], seen["APP"], seen["CPUS"]) == ("env", "env", "2")
    assert seen["IP"] == pod["status"]["podIP"] == seen["POD_IP"]
    assert seen["C_LEVEL"] == "info"
    assert seen["OMP_NUM_THREADS"] == "2"
    assert seen["PYTHONUNBUFFERED"] == "1"
    assert seen["HOSTNAME"] == "env"
    assert "ABSENT" not in seen
    assert "HOST_SECRET" not in seen
    allowed = ("GRYVIA_", "KUBERNETES_", "C_", "OMP_", "MKL_", "OPENBLAS_")
    known = {e["name"] for e in env} | {
        "PATH",
        "HOME",
        "HOSTNAME",
        "POD_IP",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "LC_CTYPE",
    }
    assert {name for name in seen if not name.startswith(allowed)} <= known


async def test_a_missing_secret_is_waited_for_and_named(machine: Any) -> None:
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "late", "key": "token"}}}]
    machine.pod("waits", "import os; print(os.environ['TOKEN'])", main={"env": env})

    def waiting(pod: Json) -> bool:
        states = pod["status"].get("containerStatuses") or [{"state": {}}]
        return states[0]["state"].get("waiting", {}).get("reason") == "CreateContainerConfigError"

    pod = await machine.until("pods", "waits", waiting)
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"] == 'secret "late" not found'
    machine.create("secrets", {"metadata": {"name": "late"}, "stringData": {"token": "here"}})
    assert machine.log(await machine.phase("waits", "Succeeded")) == "here\n"


async def test_the_termination_message_is_what_the_program_wrote_last(machine: Any) -> None:
    code = "open('/dev/termination-log', 'w').write('x' * 5000 + 'end'); raise SystemExit(1)"
    machine.pod("message", code)
    message = ended(await machine.phase("message", "Failed"))["message"]
    assert len(message) == 4096
    assert message.endswith("xend")


async def test_a_failed_container_without_a_message_may_fall_back_to_its_log(machine: Any) -> None:
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    machine.pod("fallback", "print('the reason'); raise SystemExit(1)", main=policy)
    assert ended(await machine.phase("fallback", "Failed"))["message"] == "the reason\n"


async def test_an_image_with_an_entrypoint_takes_args_and_its_own_environment(machine: Any) -> None:
    code = "import os; print(os.environ['FROM_IMAGE'])"
    machine.pod("tool", main={"image": "tool:1", "command": None, "args": [code]})
    assert machine.log(await machine.phase("tool", "Succeeded")) == "yes\n"
    machine.pod("default", main={"image": "tool:1", "command": None})
    assert machine.log(await machine.phase("default", "Succeeded")) == "default command\n"


async def test_an_unknown_image_waits_as_a_failed_pull_that_names_images_yaml(machine: Any) -> None:
    machine.pod("unknown", main={"image": "nobody/knows:1"})

    def backs_off(pod: Json) -> bool:
        states = pod["status"].get("containerStatuses") or [{"state": {}}]
        return states[0]["state"].get("waiting", {}).get("reason") == "ImagePullBackOff"

    pod = await machine.until("pods", "unknown", backs_off)
    assert "images.yaml" in pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert pod["status"]["phase"] == "Pending"
    assert {"Pulling", "Failed", "BackOff"} <= machine.reasons("unknown")


async def test_init_containers_run_in_order_and_before_the_main_one(machine: Any) -> None:
    mount = [{"name": "shared", "mountPath": "/shared"}]

    def step(name: str, code: str) -> Json:
        return {"name": name, "image": "busybox:1", "command": ["sh", "-c", code], "volumeMounts": mount}

    machine.pod(
        "init",
        "print(open('/shared/steps').read())",
        main={"volumeMounts": mount},
        initContainers=[step("one", "echo one >> /shared/steps"), step("two", "echo two >> /shared/steps")],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )
    pod = await machine.phase("init", "Succeeded", "Failed")
    assert machine.log(pod).split() == ["one", "two"]
    assert ended(pod, "two")["exitCode"] == 0


async def test_a_failed_init_container_fails_the_pod(machine: Any) -> None:
    broken = {"name": "prepare", "image": "busybox:1", "command": ["sh", "-c", "exit 7"]}
    machine.pod("broken", "print('never')", initContainers=[broken])
    pod = await machine.phase("broken", "Failed")
    assert ended(pod, "prepare")["exitCode"] == 7
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"


async def test_a_sidecar_starts_first_and_is_stopped_after_the_main_container(machine: Any) -> None:
    sidecar = {
        "name": "side",
        "image": "busybox:1",
        "restartPolicy": "Always",
        "command": ["sh", "-c", "exec sleep 60"],
    }
    machine.pod("main-done", "print('done')", initContainers=[sidecar])
    pod = await machine.phase("main-done", "Succeeded")
    assert ended(pod, "side")["exitCode"] == 143


async def test_a_crashing_container_is_restarted_with_back_off_and_its_last_end_shown(machine: Any) -> None:
    machine.pod("crash", "print('attempt'); raise SystemExit(1)", restartPolicy="Always")

    def loops(pod: Json) -> bool:
        states = pod["status"].get("containerStatuses") or [{"state": {}, "restartCount": 0}]
        return (
            states[0]["restartCount"] >= 1 and states[0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
        )

    pod = await machine.until("pods", "crash", loops)
    status = pod["status"]["containerStatuses"][0]
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert pod["status"]["phase"] == "Running"
    assert "back-off" in status["state"]["waiting"]["message"]
    assert machine.log(pod, previous=True) == "attempt\n"
    assert "BackOff" in machine.reasons("crash")


async def test_on_failure_restarts_until_it_succeeds(machine: Any) -> None:
    code = """
import os, sys
done = os.path.exists('/state/once')
open('/state/once', 'w').close()
sys.exit(0 if done else 1)
"""
    machine.pod(
        "retry",
        code,
        restartPolicy="OnFailure",
        main={"volumeMounts": [{"name": "state", "mountPath": "/state"}]},
        volumes=[{"name": "state", "emptyDir": {}}],
    )
    pod = await machine.phase("retry", "Succeeded")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_deleting_a_pod_asks_it_to_stop_and_waits_for_it(machine: Any) -> None:
    code = """
import pathlib, signal, sys, time
def stop(*_):
    pathlib.Path('/state/saved').write_text('checkpoint')
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
print('ready', flush=True)
while True:
    time.sleep(1)
"""
    volume = {"name": "state", "hostPath": {"path": str(machine.data_dir / "out"), "type": "DirectoryOrCreate"}}
    machine.pod(
        "graceful",
        code,
        main={
            "volumeMounts": [{"name": "state", "mountPath": "/state"}],
            "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
            "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo bye > /state/prestop"]}}},
        },
        volumes=[volume],
    )
    pod = await machine.until("pods", "graceful", lambda p: _ready(p))
    while "ready" not in machine.log(pod):
        await _log_written(machine, pod)
    machine.api.delete(machine.type("pods"), "default", "graceful")
    await machine.gone("pods", "graceful")
    assert (machine.data_dir / "out" / "saved").read_text() == "checkpoint"
    assert (machine.data_dir / "out" / "prestop").read_text() == "bye\n"


async def _log_written(machine: Any, pod: Json) -> None:
    """Give the program a turn; the test's own timeout bounds the wait."""
    ok, _ = await machine.node.execute(pod, "main", ["true"])
    assert ok


def _ready(pod: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


async def test_a_pod_that_ignores_sigterm_is_killed_after_its_grace_period(machine: Any) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    machine.pod("stubborn", code, terminationGracePeriodSeconds=1)
    pod = await machine.phase("stubborn", "Running")
    pid = _pid(machine, pod)
    machine.api.delete(machine.type("pods"), "default", "stubborn")
    await machine.gone("pods", "stubborn")
    assert not _alive(pid)


def _pid(machine: Any, pod: Json) -> int:
    record = machine.data_dir / "pods" / pod["metadata"]["uid"] / "containers" / "main" / "process.json"
    return int(json.loads(record.read_text())["pid"])


async def test_a_pod_over_its_deadline_fails_with_that_reason(machine: Any) -> None:
    machine.pod("slow", "import time; time.sleep(60)", activeDeadlineSeconds=1)
    pod = await machine.phase("slow", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert ended(pod)["exitCode"] == 143


async def test_children_of_a_container_do_not_outlive_it(machine: Any) -> None:
    code = "import subprocess; print(subprocess.Popen(['sleep', '60']).pid)"
    machine.pod("parent", code)
    pod = await machine.phase("parent", "Succeeded")
    pid = int(machine.log(pod))
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_pod_that_finds_no_place_is_unschedulable_and_taken_when_it_fits(machine: Any) -> None:
    gpu = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    machine.pod("first", "import time; time.sleep(60)", main=gpu)
    await machine.phase("first", "Running")
    machine.pod("second", "print('got it')", main=gpu)
    pod = await machine.until("pods", "second", lambda p: p["status"].get("conditions"))
    condition = pod["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "Unschedulable")
    assert condition["message"] == "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    machine.api.delete(machine.type("pods"), "default", "first", grace_seconds=0)
    await machine.phase("second", "Succeeded")


async def test_a_node_selector_that_does_not_match_keeps_the_pod_pending(machine: Any) -> None:
    machine.pod("elsewhere", nodeSelector={"zone": "there"})
    pod = await machine.until("pods", "elsewhere", lambda p: p["status"].get("conditions"))
    assert "node affinity/selector" in pod["status"]["conditions"][0]["message"]
    machine.pod("here", "print(1)", nodeSelector={"zone": "here"})
    await machine.phase("here", "Succeeded")
