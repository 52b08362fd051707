"""The generated roles are exactly what the services need: nothing is refused, and nothing is granted that nobody uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.config import KubeSettings
from gryvia_common.kube.resources import CONFIG_MAPS, NAMESPACES, PODS
from gryvia_common.runtime.access import Rule, controller_rules, manifests
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings
from gryvia_jobs.access import WRITES
from gryvia_jobs.access import access as jobs_access
from gryvia_jobs.controller import controller
from gryvia_jobs.settings import JobsSettings

from .conftest import NAMES, restricted_services
from .guarded_api import NAMESPACE, Grant, GuardedApi, Request, grants, read_request
from .scenario import Scenario

ROOT = Path(__file__).parents[2]
# Room for the headers and nothing else: every object is read from the API server.
SMALLEST_PAYLOAD = 4200


async def test_every_request_is_allowed_and_every_right_is_used(tmp_path: Path) -> None:
    async with DevCluster(Settings(data_dir=tmp_path / "cluster", node=False)) as cluster:
        await cluster.write_kubeconfig(tmp_path / "admin")
        async with connected(KubeSettings(kubeconfig=tmp_path / "admin"), SystemClock()) as kube:
            await install_crds(kube, SystemClock())
            for name in (NAMESPACE, "team"):
                await kube.create(NAMESPACES, {"metadata": {"name": name}})
            api = GuardedApi(cluster.url, dict.fromkeys(NAMES, cluster.token), judge=True)
            scenario = Scenario(kube, "team")
            api.before = scenario.disturb
            async with api.serving(), restricted_services(api, tmp_path) as services:
                await scenario.play()
                await services.restart_bus(max_payload=SMALLEST_PAYLOAD)
                await services.until_granted_is_used()
            assert api.refused == []
            assert services.violations() == []


def test_the_files_in_deploy_are_what_the_services_declare() -> None:
    generator = ROOT / "tools" / "generate_access.py"
    ran = subprocess.run([sys.executable, generator, "--check"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_no_rule_has_a_wildcard_and_no_service_reads_secrets_or_lists() -> None:
    for name in NAMES:
        found = grants(name)
        assert found
        assert not any("*" in part for grant in found for part in grant)
        assert not any(grant.resource == "secrets" for grant in found)
        assert name == "bridge" or not any(grant.verb in ("list", "watch") for grant in found)


def test_a_write_to_a_type_that_is_no_child_is_an_error() -> None:
    with pytest.raises(ValueError, match="configmaps is written but is neither kind nor child"):
        controller_rules((controller(JobsSettings()),), {**WRITES, CONFIG_MAPS: ("create",)})


def test_a_role_that_is_not_bound_grants_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import yaml

    documents = [d for d in manifests(jobs_access()) if not d["kind"].endswith("Binding")]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(documents))
    monkeypatch.setattr("tests.access.guarded_api.RBAC", tmp_path)
    assert grants("jobs") == frozenset()


@pytest.mark.parametrize(
    ("method", "path", "query", "read"),
    [
        ("GET", "/api/v1/namespaces/kube-system", {}, ("get", "", "namespaces", "", "kube-system")),
        ("GET", "/api/v1/pods", {"watch": "1"}, ("watch", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/a/pods/p/log", {}, ("get", "", "pods/log", "a", "p")),
        ("GET", "/apis/batch/v1/namespaces/a/jobs", {}, ("list", "batch", "jobs", "a", "")),
        ("POST", "/apis/batch/v1/namespaces/a/jobs", {}, ("create", "batch", "jobs", "a", "")),
        ("DELETE", "/apis/batch/v1/namespaces/a/jobs", {}, ("deletecollection", "batch", "jobs", "a", "")),
        ("PATCH", "/apis/g/v1/namespaces/a/ks/k/status", {}, ("patch", "g", "ks/status", "a", "k")),
    ],
)
def test_a_request_is_read_as_the_api_server_reads_it(
    method: str, path: str, query: dict[str, str], read: tuple[str, ...]
) -> None:
    assert read_request("s", method, path, query) == Request("s", *read)


def test_a_name_in_a_rule_covers_that_object_only_and_no_create() -> None:
    grant = Grant("get", "", "namespaces", "", "kube-system")
    assert grant.covers(Request("s", "get", "", "namespaces", "", "kube-system"))
    assert not grant.covers(Request("s", "get", "", "namespaces", "", "default"))
    assert not Grant("create", "", "pods", "", "p").covers(Request("s", "create", "", "pods", "a", ""))


def test_what_an_action_reads_and_what_the_runtime_does_is_derived_from_the_controller() -> None:
    rules = controller_rules((controller(JobsSettings()),), {})
    assert Rule(AI_JOB.resource.group, "gryviaaijobs", ("get",)) in rules
    assert Rule(AI_JOB.resource.group, "gryviaaijobs/status", ("patch",)) in rules
    assert Rule(PODS.group, "pods/log", ("get",)) in rules
    assert Rule("", "events", ("create", "patch")) in rules
