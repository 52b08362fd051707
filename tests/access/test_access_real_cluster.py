"""The services on a real API server with RBAC, each with the token of its own ServiceAccount and the roles in deploy/rbac."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.realcluster import RealCluster

from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.resources import NAMESPACES

from .conftest import NAMES, restricted_services
from .guarded_api import NAMESPACE, RBAC, GuardedApi
from .scenario import Scenario

pytestmark = pytest.mark.skipif(
    os.environ.get("GRYVIA_TEST_KUBE") != "1", reason="on a real API server: make test-kube"
)
KUBECTL = Path(sys.executable).parent / "kubectl"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path / "real") as cluster:
        yield cluster


async def test_the_services_need_no_other_rights_than_theirs(cluster: RealCluster, tmp_path: Path) -> None:
    cluster.kubectl("apply", "-f", str(RBAC))
    tokens = {name: cluster.kubectl("create", "token", f"gryvia-{name}", "-n", NAMESPACE).strip() for name in NAMES}
    async with connected(KubeSettings(kubeconfig=cluster.kubeconfig), SystemClock()) as kube:
        await install_crds(kube, SystemClock())
        await kube.create(NAMESPACES, {"metadata": {"name": "team"}})
        tls = ssl.create_default_context(cafile=cluster.ca)
        api = GuardedApi(cluster.url, tokens, judge=False, tls=tls)
        scenario = Scenario(kube, "team")
        api.before = scenario.disturb
        async with api.serving(), restricted_services(api, tmp_path) as services:
            await scenario.play()
        assert api.refused == []
        assert services.violations() == []
    mine = [
        event
        for event in cluster.audit()
        if event["user"]["username"].startswith(f"system:serviceaccount:{NAMESPACE}:")
    ]
    assert {event["user"]["username"].rpartition("-")[2] for event in mine} == set(NAMES)
    assert {event["annotations"]["authorization.k8s.io/decision"] for event in mine} == {"allow"}


def test_what_was_not_granted_is_forbidden(cluster: RealCluster) -> None:
    cluster.kubectl("apply", "-f", str(RBAC))

    def may(service: str, *question: str) -> bool:
        account = f"--as=system:serviceaccount:{NAMESPACE}:gryvia-{service}"
        command = [str(KUBECTL), f"--kubeconfig={cluster.kubeconfig}", "auth", "can-i", account, *question]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() == "yes"

    assert may("jobs", "create", "jobs.batch", "-n", "team")
    assert not any(may(name, "get", "secrets", "-n", "team") for name in NAMES)
    assert not may("jobs", "list", "pods", "-n", "team")
    assert not may("tuner", "create", "jobs.batch", "-n", "team")
    assert not may("bridge", "create", "pods", "-n", "team")
    assert may("bridge", "patch", "leases/gryvia-bridge", "-n", NAMESPACE)
    assert not may("bridge", "patch", "leases/other", "-n", NAMESPACE)
