"""kubectl and the parts of a cluster that run things: jobs, logs, roll-outs, cascades."""

from __future__ import annotations

import json
import subprocess
from typing import Any


def job(name: str, code: str) -> str:
    container = {"name": "main", "image": "python:3.12", "command": ["python", "-c", code]}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}
    return json.dumps(body)


def test_logs_of_a_job_are_followed_to_the_end(kubectl: Any, namespace: str) -> None:
    k = ("-n", namespace)
    code = "import time\nfor i in range(4):\n print('line', i, flush=True); time.sleep(0.1)"
    kubectl(*k, "create", "-f", "-", stdin=job("j", code))
    kubectl(*k, "wait", "--for=jsonpath={.status.active}=1", "job/j", "--timeout=10s")
    kubectl(
        *k, "wait", "pod", "-l", "job-name=j", "--for=jsonpath={.status.containerStatuses[0].image}", "--timeout=10s"
    )
    kubectl(*k, "wait", "--for=condition=Complete", "job/j", "--timeout=20s")
    assert kubectl(*k, "logs", "-f", "job/j") == "line 0\nline 1\nline 2\nline 3\n"
    assert kubectl(*k, "logs", "job/j", "--tail=2") == "line 2\nline 3\n"
    assert kubectl(*k, "logs", "job/j", "--limit-bytes=6") == "line 0"
    assert "Job completed" in kubectl(*k, "describe", "job", "j")
    assert "not found" in kubectl.fails(*k, "logs", "job/j", "--previous")
    assert "is not valid for pod" in kubectl.fails(*k, "logs", "job/j", "-c", "other")


def test_following_begins_while_the_container_runs(kubectl: Any, namespace: str) -> None:
    k = ("-n", namespace)
    script = "import os, time\nprint('begun', flush=True)\n"
    script += "while not os.path.exists(os.environ['GATE']): time.sleep(0.02)\nprint('ended')"
    gate = kubectl.home / f"gate-{namespace}"
    container = {"name": "c", "image": "python:3.12", "command": ["python", "-c", script]}
    container["env"] = [{"name": "GATE", "value": str(gate)}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    kubectl(*k, "create", "-f", "-", stdin=json.dumps(pod))
    kubectl(*k, "wait", "pod/p", "--for=condition=Ready", "--timeout=10s")
    with subprocess.Popen(kubectl.command(*k, "logs", "-f", "p"), stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "begun\n"
        gate.touch()
        assert following.stdout.read() == "ended\n"
    assert following.returncode == 0


def test_logs_of_the_previous_container(kubectl: Any, namespace: str) -> None:
    k = ("-n", namespace)
    script = "import os, sys\nfirst = not os.path.exists(os.environ['MARK'])\nopen(os.environ['MARK'], 'w').close()\n"
    script += "print('first' if first else 'second'); sys.exit(first)"
    container = {"name": "c", "image": "python:3.12", "command": ["python", "-c", script]}
    container["env"] = [{"name": "MARK", "value": str(kubectl.home / f"mark-{namespace}")}]
    spec = {"restartPolicy": "OnFailure", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    kubectl(*k, "create", "-f", "-", stdin=json.dumps(pod))
    kubectl(*k, "wait", "pod/p", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=25s")
    assert kubectl(*k, "logs", "p") == "second\n"
    assert kubectl(*k, "logs", "p", "--previous") == "first\n"


def test_get_watch_prints_changes(kubectl: Any, namespace: str) -> None:
    k = ("-n", namespace)
    kubectl(*k, "create", "configmap", "a")
    with subprocess.Popen(
        kubectl.command(*k, "get", "configmaps", "-w", "--no-headers"), stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[0] == "a"
        kubectl(*k, "create", "configmap", "b")
        assert watching.stdout.readline().split()[0] == "b"
        watching.terminate()


def test_a_roll_out_and_the_three_cascades(kubectl: Any, namespace: str) -> None:
    k = ("-n", namespace)
    for name in ("back", "fore", "orphan"):
        kubectl(*k, "create", "deployment", name, "--image=busybox:1", "--", "sleep", "60")
        assert "successfully rolled out" in kubectl(*k, "rollout", "status", f"deployment/{name}", "--timeout=20s")
    kubectl(*k, "delete", "deployment", "back", "--cascade=background")
    kubectl(*k, "wait", "rs", "-l", "app=back", "--for=delete", "--timeout=10s")
    kubectl(*k, "delete", "deployment", "fore", "--cascade=foreground", "--timeout=45s")
    assert kubectl(*k, "get", "rs,pods", "-l", "app=fore", "-o", "name") == ""
    kubectl(*k, "delete", "deployment", "orphan", "--cascade=orphan")
    left = json.loads(kubectl(*k, "get", "rs", "-l", "app=orphan", "-o", "json"))["items"]
    assert [item["metadata"].get("ownerReferences") for item in left] == [None]
