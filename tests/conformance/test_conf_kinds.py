"""Gryvia's own kinds: accepted by a real API server, and every field defaulted, pruned and refused alike by both."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from gryvia_cli.platform.crds import connected, install_crds
from gryvia_common.clock import SystemClock
from gryvia_common.kinds.catalogue import KINDS
from gryvia_common.kube.client import KubeSettings

from .widgets import CRDS_PATH

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").rglob("*.yaml"))
TIME = "2026-01-05T08:00:00Z"
PATTERNS = {
    "https": "https://example.com/a",
    "numkMGTPE": "10Gi",
    "a-z0-9": "data-1",
    "A-Za-z0-9": "name_1",
    "a-zA-Z0-9_-": "tool_1",
}
UNCHECKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
WRONG: list[Any] = ["", "text", 0, -1, 2**31, 2**40, 1.5, True, [], ["a"], {}, {"a": 1}, None]


@pytest.fixture
async def kinds(target: Any, api: Any) -> None:
    """Installed as the platform installs them, once a server."""
    if (await api("GET", f"{CRDS_PATH}/{KINDS[-1].resource.plural}.gryvia.io")).code == 200:
        return
    async with connected(KubeSettings(kubeconfig=target.kubeconfig), SystemClock()) as kube:
        await install_crds(kube, SystemClock())


@cache
def version_of(plural: str) -> Any:
    [version] = yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text())["spec"]["versions"]
    return version


def schema_of(plural: str) -> Any:
    return version_of(plural)["schema"]["openAPIV3Schema"]


def sample(node: Any, *, whole: bool) -> Any:
    """A value that the node accepts, by itself; with `whole` every field has one."""
    if node.get("x-kubernetes-int-or-string"):
        return "500m"
    if "enum" in node:
        return node["enum"][0]
    match node.get("type"):
        case "object" if "additionalProperties" in node:
            return {"key": sample(node["additionalProperties"], whole=whole)}
        case "object":
            required = node.get("required", ())
            names = [name for name in node.get("properties", {}) if whole or name in required]
            return {name: sample(node["properties"][name], whole=whole) for name in names}
        case "array":
            return [sample(node["items"], whole=whole)] if whole or node.get("minItems") else []
        case "integer" | "number":
            return node.get("minimum", 1) + (1 if node.get("exclusiveMinimum") else 0)
        case "boolean":
            return True
        case "string" if node.get("format") == "date-time":
            return TIME
        case "string" if "pattern" in node:
            return next(text for mark, text in PATTERNS.items() if mark in node["pattern"])
        case "string":
            return "text"
    return ["any"]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a schema, as the way to it in a whole sample."""
    if path:
        yield path
    for name, inner in node.get("properties", {}).items():
        yield from places(inner, (*path, name))
    if "items" in node:
        yield from places(node["items"], (*path, 0))
    if isinstance(node.get("additionalProperties"), dict):
        yield from places(node["additionalProperties"], (*path, "key"))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with `new` at `path`; where it is ..., that field is missing."""
    value = copy.deepcopy(value)
    *parents, last = path
    target = value
    for key in parents:
        target = target[key]
    if new is ...:
        del target[last]
    else:
        target[last] = new
    return value


def outcome(sent: Any, answer: Any) -> Any:
    """What an answer says about the fields."""
    if answer.code >= 300:
        causes = (answer.body.get("details") or {}).get("causes") or [{"message": answer.body["message"]}]
        texts = [f"{cause.get('field')}: {cause['message']}" for cause in causes]
        # The real server says it of nearly every refusal; elsewhere it is compared in full.
        return [answer.code, sorted(text for text in texts if text != f"<nil>: {UNCHECKED}")]
    stored = {part: answer.body.get(part) for part in ("spec", "status") if part in answer.body}
    asked = {part: sent.get(part) for part in ("spec", "status") if part in sent}
    found: list[Any] = [answer.code, "as sent" if stored == asked else stored]
    return [*found, list(answer.warnings)] if answer.warnings else found


async def test_all_are_established_and_structural(api: Any, kinds: None) -> None:
    for kind in KINDS:
        found = await api.ok("GET", f"{CRDS_PATH}/{kind.resource.plural}.gryvia.io")
        conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}
        assert found["status"]["acceptedNames"]["kind"] == kind.name


@pytest.mark.parametrize("file", EXAMPLES)
async def test_an_example_is_accepted_as_it_is(api: Any, kinds: None, namespace: str, file: str) -> None:
    for manifest in yaml.safe_load_all((ROOT / file).read_text()):
        group, _, version = manifest["apiVersion"].rpartition("/")
        plural = {kind.name: kind.resource.plural for kind in KINDS}.get(
            manifest["kind"], manifest["kind"].lower() + "s"
        )
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        path = f"{prefix}/namespaces/{namespace}/{plural}?fieldValidation=Strict"
        answer = await api("POST", path, manifest)
        assert (answer.code, answer.warnings) == (201, ()), answer.body


@pytest.mark.parametrize("plural", [kind.resource.plural for kind in KINDS])
async def test_every_field(talk: Any, kinds: None, api: Any, namespace: str, plural: str) -> None:
    """Each field of the spec alone, missing, of every wrong type and with unknown neighbours: what is stored, what refused."""
    [kind] = [kind for kind in KINDS if kind.resource.plural == plural]
    spec = schema_of(plural)["properties"]["spec"]
    base = "/apis/gryvia.io/v1alpha1"
    path = f"{base}/namespaces/{namespace}/{plural}" if kind.resource.namespaced else f"{base}/{plural}"

    async def tell(about: str, value: Any) -> None:
        body = {"apiVersion": "gryvia.io/v1alpha1", "kind": kind.name, "metadata": {"name": "x"}, "spec": value}
        talk.say(about, outcome(body, await api("POST", f"{path}?dryRun=All", body)))

    await tell("least", sample(spec, whole=False))
    whole = sample(spec, whole=True)
    await tell("whole", whole)
    for place in places(spec):
        about = ".".join(map(str, place))
        # Templates of pods come up in many kinds: their inside is tried once, in the kind whose own it is.
        if len(place) > 1 and "jobTemplate" in place[:-1]:
            continue
        await tell(f"{about} missing", changed(whole, place, ...))
        for wrong in WRONG if len(place) < 3 else WRONG[3:8:2]:
            await tell(f"{about} = {json.dumps(wrong)}", changed(whole, place, wrong))
    for place in [(), *(place for place in places(spec) if isinstance(sample_at(whole, place), dict))][:6]:
        await tell(f"{'.'.join(map(str, place))} with an unknown field", changed(whole, (*place, "notAField"), 1))


def sample_at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


@pytest.mark.parametrize("plural", [kind.resource.plural for kind in KINDS if kind.status_subresource])
async def test_every_field_of_the_status(talk: Any, kinds: None, api: Any, namespace: str, plural: str) -> None:
    [kind] = [kind for kind in KINDS if kind.resource.plural == plural]
    base = "/apis/gryvia.io/v1alpha1"
    path = f"{base}/namespaces/{namespace}/{plural}" if kind.resource.namespaced else f"{base}/{plural}"
    least = sample(schema_of(plural)["properties"]["spec"], whole=False)
    name = f"{namespace}-x"
    body = {"apiVersion": "gryvia.io/v1alpha1", "kind": kind.name, "metadata": {"name": name}, "spec": least}
    created = await api("POST", path, body)
    if created.code != 201:
        talk.say("create", outcome(body, created))
        return
    status = schema_of(plural)["properties"]["status"]
    whole = sample(status, whole=True)

    async def tell(about: str, value: Any) -> None:
        sent = {"spec": created.body["spec"], "status": value}
        answer = await api(
            "PATCH", f"{path}/{name}/status?dryRun=All", {"status": value}, content_type="application/merge-patch+json"
        )
        talk.say(about, outcome(sent, answer))

    await tell("whole", whole)
    for place in places(status):
        for wrong in ("text", -1, 1.5, [], {"a": 1}):
            if len(place) < 3:
                await tell(f"{'.'.join(map(str, place))} = {json.dumps(wrong)}", changed(whole, place, wrong))
    if not kind.resource.namespaced:
        await api.ok("DELETE", f"{path}/{name}")
