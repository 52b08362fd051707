"""A whole cluster in its own process, as `python -m gryvia_devcluster` runs it, and every kubectl that is here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns:
    - {name: Phase, type: string, jsonPath: .status.phase}
    - {name: Size, type: integer, jsonPath: .spec.size, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        description: A widget of any size.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              color: {type: string, enum: [red, blue], default: red}
              replicas: {type: integer}
              frame: {type: object, properties: {wood: {type: string, description: Which wood.}}}
          status:
            type: object
            properties:
              phase: {type: string}
              replicas: {type: integer}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
"""


def kubectls() -> list[str]:
    """The kubectl of this environment and the one on the PATH, if they are two."""
    here = Path(sys.executable).with_name("kubectl")
    path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if Path(p) != here.parent)
    found = [str(here)] if here.exists() else []
    if other := shutil.which("kubectl", path=path):
        found.append(other)
    return found


@dataclass
class Kubectl:
    program: str
    home: Path

    def command(self, *arguments: str) -> list[str]:
        options = ["--kubeconfig", str(self.home / "kubeconfig"), "--cache-dir", str(self.home / "cache")]
        return [self.program, *options, *arguments]

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), input=stdin, capture_output=True, text=True, timeout=30, check=False
        )

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """The output of a command that must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """What a command that must fail says."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)}\n{done.stdout}"
        return done.stderr


@pytest.fixture(scope="session", params=kubectls() or [pytest.param("", marks=pytest.mark.skip("there is no kubectl"))])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    home = tmp_path_factory.mktemp("cluster")
    command = [
        sys.executable,
        "-m",
        "gryvia_devcluster",
        "--data",
        str(home / "data"),
        "--kubeconfig",
        str(home / "kubeconfig"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Serving on http://127.0.0.1:"), process.communicate()[1]
        kubectl = Kubectl(request.param, home)
        kubectl("create", "-f", "-", stdin=CRD)
        yield kubectl
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=10)
        assert (process.returncode, "Traceback" in errors) == (0, False), errors


@pytest.fixture
def kubectl(cluster: Kubectl, request: pytest.FixtureRequest) -> Kubectl:
    return cluster


@pytest.fixture
def namespace(cluster: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    cluster("create", "namespace", name)
    return name
