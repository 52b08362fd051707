"""A person's day with kubectl: the same commands print the same on both, for every kubectl that is here.

What a real server made each print is recorded; ages, uids, versions and made-up suffixes are replaced. A kubectl whose minor
version has not been recorded is compared where both servers are at hand, and skipped elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.realcluster.recording import compare, differences, normalized

from .conftest import KNOWN, KNOWN_FILE, RECORDED
from .widgets import widget

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "web:1", "ports": [{"containerPort": 80}]}]},
        },
    },
}
STATUS = '{"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}}'

SCRIPT: list[tuple[Any, ...]] = [
    ("create -f -", widget()),
    ("create -f -", widget()),
    ("create -f -", widget("wrong", size=0)),
    ("create -f -", widget("typo", colour="red")),
    ("create -f -", {**widget("unknown"), "kind": "Gadget"}),
    ("get widgets",),
    ("get wd a -o wide",),
    ("get wd -o name",),
    ("get wd a -o yaml",),
    ("get wd a -o jsonpath={.spec.color}",),
    ("get wd a -o custom-columns=NAME:.metadata.name,COLOR:.spec.color",),
    ("get wd nobody",),
    ("get gadgets",),
    ("get all",),
    ("describe wd a",),
    ("explain widget.spec",),
    ("explain widget.spec.frame",),
    ("explain widget.spec.nothing",),
    ("explain pod.spec.restartPolicy --recursive",),
    ("label wd a team=ml",),
    ("label wd a team=other",),
    ("label wd a team=other --overwrite",),
    ("label wd a team-",),
    ("annotate wd a note=1",),
    ("patch wd a --type=merge -p {\"spec\":{\"size\":2}}",),
    ("patch wd a --type=merge -p {\"spec\":{\"size\":2}}",),
    ("patch wd a --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/color\",\"value\":\"blue\"}]",),
    ("patch wd a -p {\"spec\":{\"size\":3}}",),
    (f"patch wd a --subresource=status --type=merge -p {STATUS}",),
    ("get wd",),
    ("wait wd/a --for=condition=Ready --timeout=5s",),
    ("wait wd/a --for=jsonpath={.status.phase}=Ready --timeout=5s",),
    ("wait wd/a --for=condition=Never --timeout=1s",),
    ("scale wd a --replicas=3",),
    ("apply -f -", widget("b", replicas=1)),
    ("apply -f -", widget("b", replicas=1)),
    ("apply -f -", widget("b", replicas=2)),
    ("apply -f -", widget("b")),
    ("get wd b -o yaml",),
    ("diff -f -", widget("b", size=5)),
    ("apply --server-side -f -", widget("c", size=4)),
    ("apply --server-side --field-manager=other -f -", widget("c", size=5)),
    ("apply --server-side --field-manager=other --force-conflicts -f -", widget("c", size=5)),
    ("apply --server-side -f -", widget("b")),
    ("get wd b --show-managed-fields -o yaml",),
    ("apply --dry-run=server -f -", widget("d")),
    ("create --dry-run=server -f -", widget("d")),
    ("replace -f -", widget("c", size=9)),
    ("replace -f -", widget("nobody")),
    ("get wd -l team=ml",),
    ("get wd --field-selector metadata.name=b -o name",),
    ("get wd --field-selector spec.color=blue -o name",),
    ("get wd --field-selector spec.size=1",),
    ("delete wd a --dry-run=server",),
    ("delete wd a",),
    ("delete wd a",),
    ("delete wd a --ignore-not-found",),
    ("delete wd --all",),
    ("create configmap cm --from-literal=a=1 --from-literal=b=2",),
    ("get configmap cm -o yaml",),
    ("describe configmap cm",),
    ("create secret generic s --from-literal=p=q",),
    ("get secret s -o yaml",),
    ("describe secret s",),
    ("create serviceaccount robot",),
    ("create service clusterip web --tcp=80:8080",),
    ("create role r --verb=get,list --resource=pods",),
    ("create rolebinding rb --role=r --serviceaccount={ns}:robot",),
    ("get role r -o yaml",),
    ("create quota q --hard=pods=5",),
    ("get role,rolebinding,serviceaccount -o name",),
    ("auth can-i create pods",),
    ("apply -f -", DEPLOYMENT),
    ("rollout status deployment/web --timeout=30s",),
    ("get deployment web",),
    ("get deployment web -o wide",),
    ("set image deployment/web c=web:2",),
    ("rollout status deployment/web --timeout=30s",),
    ("rollout history deployment/web",),
    ("rollout undo deployment/web",),
    ("rollout status deployment/web --timeout=30s",),
    ("scale deployment web --replicas=1",),
    ("rollout status deployment/web --timeout=30s",),
    ("delete deployment web",),
    ("create job j --image=busybox -- true",),
    ("wait job/j --for=condition=Complete --timeout=30s",),
    ("get job j",),
    ("delete job j",),
    ("api-resources --api-group=example.com",),
    ("get namespace {ns}",),
]  # fmt: skip


def kubectls() -> dict[str, str]:
    """Minor version to program: the kubectl of this environment and the one on the PATH."""
    here = Path(sys.executable).with_name("kubectl")
    path = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if Path(p) != here.parent)
    found = {}
    for program in (str(here) if here.exists() else None, shutil.which("kubectl", path=path)):
        if program is None:
            continue
        told = subprocess.run(
            [program, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
        )
        if told.returncode == 0:
            version = json.loads(told.stdout)["clientVersion"]["gitVersion"]
            found[re.sub(r"^v(\d+\.\d+).*", r"\1", version)] = program
    return found


KUBECTLS = kubectls()
_SUFFIX = re.compile(r"\b((?:web|j|robot)-[a-z0-9]{8,10}(?:-[a-z0-9]{5})?|j-[a-z0-9]{5})\b")
_AGE = re.compile(r"\b\d+m?\d*s\b")
_IP = re.compile(r"\b198\.\d+\.\d+\.\d+\b|\b10\.\d+\.\d+\.\d+\b|\b127\.\d+\.\d+\.\d+\b")


def cleaned(text: str, namespace: str) -> list[str]:
    text = text.replace(namespace, "NS").replace(os.environ.get("TMPDIR", "/tmp"), "/tmp")
    text = _IP.sub("ADDRESS", _AGE.sub("AGE", _SUFFIX.sub("MADE-UP", text)))
    text = re.sub(r"^(\s*(?:resourceVersion|Resource Version):).*$", r"\1 VERSION", text, flags=re.MULTILINE)
    # How often a rollout is seen under way is chance.
    text = re.sub(r"^Waiting for deployment .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"(LIVE|MERGED)-\d+", r"\1-N", text)
    text = re.sub(r"^(---|\+\+\+) .*$", r"\1 FILE", text, flags=re.MULTILINE)
    text = re.sub(r"https?://\S+", "URL", text)
    # Columns are as wide as what stands in them.
    return [re.sub(r"[ \t]{2,}", "  ", line).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("version", KUBECTLS or [pytest.param("none", marks=pytest.mark.skip("there is no kubectl"))])
async def test_a_day_with_kubectl(target: Any, namespace: str, node: Any, tmp_path: Path, version: str) -> None:
    file = RECORDED / f"kubectl-{version}.json"
    if not target.real and not file.exists():
        pytest.skip(f"no recording of kubectl {version}")
    options = ["--kubeconfig", str(target.kubeconfig), "--cache-dir", str(tmp_path), "-n", namespace]
    turns = []
    for command, *given in SCRIPT:
        arguments = split(command.replace("{ns}", namespace))
        process = await asyncio.create_subprocess_exec(
            KUBECTLS[version],
            *options,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        text, errors = await process.communicate(json.dumps(given[0]).encode() if given else b"")
        body = cleaned(text.decode(), namespace)
        if command.startswith("describe configmap"):
            # kubectl walks the data in Go's order of maps, which is another one each time.
            body.sort()
        outcome = {
            "request": f"{command} {json.dumps(given[0]['spec']) if given else ''}".strip(),
            "code": process.returncode,
            "body": body,
            "errors": cleaned(errors.decode(), namespace),
        }
        turns += normalized([outcome], namespace)
    if os.environ.get("GRYVIA_RECORD") == "known" and not target.real:
        KNOWN.pop(file.name, None)
        if found := differences(json.loads(file.read_text()), turns):
            KNOWN[file.name] = sorted(found)
        KNOWN_FILE.write_text(json.dumps(KNOWN, indent=1, sort_keys=True) + "\n")
        return
    compare(turns, file, real=target.real, known=frozenset(KNOWN.get(file.name, ())))


def split(command: str) -> list[str]:
    """At blanks; JSON has none of them here."""
    return command.split(" ")
