"""Volumes as a program finds them at their mount paths, with namespaces and without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gryvia_devcluster.node import Settings

Json = dict[str, Any]


def claim(name: str) -> Json:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


async def test_what_one_pod_writes_to_a_claim_the_next_one_reads(machine: Any) -> None:
    machine.create("persistentvolumeclaims", claim("data"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    machine.pod("writer", "open('/data/model', 'w').write('weights')", main=mount, volumes=volumes)
    await machine.phase("writer", "Succeeded")
    nested = {"volumeMounts": [{"name": "data", "mountPath": "/srv/models", "subPath": "sub"}, *mount["volumeMounts"]]}
    code = "open('/srv/models/x', 'w').write('y'); print(open('/data/model').read(), open('/data/sub/x').read())"
    machine.pod("reader", code, main=nested, volumes=volumes)
    assert machine.log(await machine.phase("reader", "Succeeded", "Failed")) == "weights y\n"


async def test_a_pod_waits_for_its_claim_to_exist(machine: Any) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "later"}}]
    machine.pod("early", "print('mounted')", volumes=volumes)
    await machine.until("pods", "early", lambda p: p["status"].get("podIP"))
    machine.create("persistentvolumeclaims", claim("later"))
    await machine.phase("early", "Succeeded")
    assert "FailedMount" in machine.reasons("early")


async def test_a_claims_folder_goes_with_it_but_not_while_a_pod_uses_it(machine: Any) -> None:
    machine.create("persistentvolumeclaims", claim("scratch"))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "scratch"}}]
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    machine.pod("user", "import time; time.sleep(60)", main=mount, volumes=volumes)
    await machine.phase("user", "Running")
    volume = machine.get("persistentvolumeclaims", "scratch")["spec"]["volumeName"]
    folder = machine.data_dir / "volumes" / volume
    machine.api.delete(machine.type("persistentvolumeclaims"), "default", "scratch")
    assert "deletionTimestamp" in machine.get("persistentvolumeclaims", "scratch")["metadata"]
    assert folder.is_dir()
    machine.api.delete(machine.type("pods"), "default", "user", grace_seconds=0)
    await machine.gone("persistentvolumeclaims", "scratch")


async def test_configuration_appears_as_files(machine: Any) -> None:
    machine.create("configmaps", {"metadata": {"name": "conf"}, "data": {"a.yaml": "lr: 1", "b": "2"}})
    machine.create("secrets", {"metadata": {"name": "key"}, "stringData": {"token": "t"}})
    volumes = [
        {"name": "conf", "configMap": {"name": "conf", "items": [{"key": "a.yaml", "path": "deep/a.yaml"}]}},
        {
            "name": "all",
            "projected": {
                "sources": [
                    {"configMap": {"name": "conf"}},
                    {"secret": {"name": "key"}},
                    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                ]
            },
        },
    ]
    mounts = [
        {"name": "conf", "mountPath": "/etc/train"},
        {"name": "all", "mountPath": "/etc/all"},
        {"name": "all", "mountPath": "/etc/one-file", "subPath": "token"},
    ]
    code = """
import json, os
print(json.dumps([open('/etc/train/deep/a.yaml').read(), sorted(os.listdir('/etc/all')),
                  open('/etc/all/labels').read(), open('/etc/one-file').read()]))
"""
    machine.pod("files", code, main={"volumeMounts": mounts}, volumes=volumes)
    pod = await machine.phase("files", "Succeeded", "Failed")
    seen = json.loads(machine.log(pod))
    assert seen == ["lr: 1", ["a.yaml", "b", "labels", "token"], 'app="files"', "t"]


class TestWithoutNamespaces:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return replace(settings, sandboxed=False)

    async def test_mount_paths_in_the_command_and_environment_are_replaced(self, machine: Any) -> None:
        machine.create("persistentvolumeclaims", claim("data"))
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        main = {
            "image": "busybox:1",
            "command": [
                "sh",
                "-c",
                "echo $OUT > /data/x; cat /data/x; echo $GRYVIA_MOUNTS; echo m > /dev/termination-log",
            ],
            "env": [{"name": "OUT", "value": "/data/model,/database"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        machine.pod("plain", main=main, volumes=volumes)
        pod = await machine.phase("plain", "Succeeded", "Failed")
        first, mapping = machine.log(pod).splitlines()
        real = json.loads(mapping)["/data"]
        assert first == f"{real}/model,/database"
        assert (Path(real) / "x").read_text() == first + "\n"
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] == "m\n"
