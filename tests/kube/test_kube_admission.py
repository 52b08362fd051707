"""deploy/admission on a real API server: an approval is given in one's own name, whatever its text looks like."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.generate_admission import FILE
from tools.realcluster import RealCluster
from typer.testing import CliRunner

from gryvia_cli.__main__ import app
from gryvia_common.kube.client import Kube

from .platform import until

KUBECTL = Path(sys.executable).parent / "kubectl"
KEY = "gryvia.io/approval-ask"
WORKFLOW = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaWorkflow
metadata: {name: release}
spec:
  steps: [{name: ask, type: approval}]
"""
ENTRY = """
apiVersion: gryvia.io/v1alpha1
kind: GryviaModelRegistry
metadata: {name: digits-v1}
spec: {modelName: digits, version: "1", artifacts: {s3Path: "s3://models/1"}}
"""


class As:
    """kubectl in a namespace as somebody who may do everything but be somebody else."""

    def __init__(self, cluster: RealCluster, namespace: str) -> None:
        self._command = [str(KUBECTL), f"--kubeconfig={cluster.kubeconfig}", "-n", namespace]

    def __call__(self, user: str, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        who = [f"--as={user}", "--as-group=system:masters"]
        return subprocess.run(
            [*self._command, *who, *arguments], input=input, capture_output=True, text=True, check=False
        )

    def annotate(self, user: str, text: str, what: str = "gryviaworkflow/release", key: str = KEY) -> str:
        """What the server has against it, empty when nothing."""
        done = self(user, "annotate", "--overwrite", what, f"{key}={text}")
        return done.stderr if done.returncode else ""


@pytest.fixture(scope="module")
def policy(cluster: RealCluster) -> Iterator[None]:
    """Other tests on the same server do without it."""
    cluster.kubectl("apply", "-f", str(FILE))
    yield
    cluster.kubectl("delete", "-f", str(FILE))


@pytest.fixture
async def kubectl(cluster: RealCluster, policy: None, kube: Kube, namespace: str) -> As:
    """The policy is in force, and there is a workflow and an entry."""
    kubectl = As(cluster, namespace)
    assert kubectl("ann", "apply", "-f", "-", input=f"{WORKFLOW}---{ENTRY}").returncode == 0

    async def refused() -> str:
        return kubectl.annotate("ann", "no approval")

    await until(refused, lambda said: "gryvia-approvals" in said)
    return kubectl


def said(by: str, **more: Any) -> str:
    return json.dumps({"decision": "Approved", "by": by, **more})


async def test_an_answer_in_ones_own_name_is_taken(kubectl: As) -> None:
    for text in (
        said("ann"),
        said("ann", comment='"by": "ben" \\ {"}'),
        '{"decision":"Rejected","by":"ann"}',
        ' { "decision" : "Approved" ,\n "by" : "ann" , "comment" : "" } ',
    ):
        assert kubectl.annotate("ann", text) == "", text
    assert kubectl.annotate("ann", said("ann"), "gryviamodelregistry/digits-v1", "gryvia.io/approval") == ""


FORGED = [
    said("ben"),
    said("ann2"),
    said("an"),
    said(""),
    said("ben", comment='"by": "ann"'),
    '{"decision": "Approved", "by": "ann", "by": "ben"}',
    '{"decision": "Approved", "by": "ben", "by": "ann"}',
    '{"by": "ben", "decision": "Approved", "x": {"decision": "Approved", "by": "ann"}}',
    '{"decision": "Approved", "x": {"by": "ann"}, "by": "ben"}',
    '{"decision": "Approved", "by": "\\u0062en"}',
    '{"decision": "Approved", "b\\u0079": "ben", "by": "ann"}',
    '{"decision": "Approved", "by": "ann", "comment": "x", "by": "ben"}',
    '{"decision": "Approved", "by": "ben\\"by\\": \\"ann"}',
    '{"decision": "Approved", "by": ["ann"]}',
    "{}",
    "Approved by ann",
]


async def test_an_answer_in_another_name_or_form_is_refused(kubectl: As) -> None:
    for text in FORGED:
        refusal = kubectl.annotate("ann", text)
        assert KEY in refusal, text
        assert '"ann"' in refusal
    refusal = kubectl.annotate("ann", said("ben"), "gryviamodelregistry/digits-v1", "gryvia.io/approval")
    assert 'annotation gryvia.io/approval: answer in your own name, which is "ann"' in refusal


async def test_a_name_with_quotes_and_backslashes_is_compared_as_it_is(kubectl: As) -> None:
    strange = 'CORP\\ann "the" boss'
    assert kubectl.annotate(strange, said(strange)) == ""
    assert kubectl.annotate(strange, said("CORPann the boss")) != ""
    assert kubectl.annotate("CORP", said(strange, comment="new")) != ""


async def test_what_is_not_an_answer_or_was_there_before_is_nobodys_business(kubectl: As) -> None:
    assert kubectl.annotate("ann", said("ann")) == ""
    assert kubectl.annotate("ben", "true", key="team/reviewed") == ""
    assert kubectl("ben", "label", "gryviaworkflow/release", "a=b").returncode == 0
    assert kubectl("ben", "annotate", "gryviaworkflow/release", f"{KEY}-").returncode == 0


async def test_an_object_cannot_bring_anothers_answer_with_it(kubectl: As) -> None:
    for by, taken in (("ben", False), ("ann", True)):
        manifest = yaml.safe_load(WORKFLOW)
        manifest["metadata"] = {"name": f"born-{by}", "annotations": {KEY: said(by)}}
        assert (kubectl("ann", "create", "-f", "-", input=json.dumps(manifest)).returncode == 0) is taken


async def test_gryvia_approve_writes_what_the_policy_takes(
    cluster: RealCluster, kubectl: As, namespace: str, tmp_path: Path
) -> None:
    me = f"system:serviceaccount:{namespace}:default"
    cluster.kubectl("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", f"--user={me}")
    config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", "default", "-n", namespace).strip()}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    state = {"status": {"phase": "Running", "stepStatuses": [{"name": "ask", "phase": "Running"}]}}
    patch = ("patch", "gryviaworkflow/release", "--subresource=status", "--type=merge", "-p", json.dumps(state))
    assert kubectl("ann", *patch).returncode == 0
    command = ["--kubeconfig", str(kubeconfig), "-n", namespace, "workflows", "approve", "release"]
    result = await asyncio.to_thread(CliRunner().invoke, app, [*command, "--comment", 'a "good" \\ one: Grüße'])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"workflow release: step ask Approved by {me}\n"
