"""Lists: selectors, pages, tables, and other forms."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tools.realcluster.http import MERGE

from .widgets import CONFIG_MAPS_PATH, PODS_PATH, WIDGETS_PATH, widget

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


async def names(talk: Any, path: str) -> None:
    """Say only the names: what the items look like is said elsewhere."""
    answer = await talk.api("GET", path.replace("{ns}", talk.namespace))
    found = [item["metadata"]["name"] for item in answer.body["items"]] if answer.code == 200 else answer.body
    talk.say(path, found)


async def test_label_selectors(talk: Any) -> None:
    for name, labels in {"a": {"x": "1"}, "b": {"x": "2", "y": ""}, "c": {}, "d": {"x": "3", "n": "7"}}.items():
        body = widget(name)
        body["metadata"]["labels"] = labels
        await talk.api.ok("POST", WIDGETS_PATH.replace("{ns}", talk.namespace), body)
    for selector in (
        "x=1", "x==2", "x!=1", "x", "!x", "x in (1,2)", "x notin (1)", "x,y", "x=1,y", "y=", " x = 1 ", "x in ()",
        "n>5", "n>9", "n<8", "x>a", "", "x=", "=1", "x=1=2", "x in (1", "X Y", "a/b/c=1", "x=bad value!", ",",
        "x in (1,)", "-x", "x=1,", "kubernetes.io/x=1",
    ):  # fmt: skip
        await names(talk, f"{WIDGETS_PATH}?labelSelector={quote(selector)}")


async def test_field_selectors(talk: Any) -> None:
    for name, color in (("a", "red"), ("b", "blue")):
        await talk.api.ok("POST", WIDGETS_PATH.replace("{ns}", talk.namespace), widget(name, color=color))
    for selector in (
        "metadata.name=a", "metadata.name!=a", "metadata.namespace={ns}", "spec.color=blue", "spec.color!=blue",
        "spec.size=1", "metadata.uid=x", "metadata.name=a,spec.color=red", "metadata.name", "metadata.name=", "=",
    ):  # fmt: skip
        await names(talk, f"{WIDGETS_PATH}?fieldSelector={quote(selector.replace('{ns}', talk.namespace))}")
    for selector in ("spec.nodeName=", "status.phase=Pending", "spec.image=x", "spec.restartPolicy=Never"):
        await names(talk, f"{PODS_PATH}?fieldSelector={quote(selector)}")
    await names(talk, f"{CONFIG_MAPS_PATH}?fieldSelector=data.a%3Db")


async def test_pages_are_of_one_moment(talk: Any, target: Any) -> None:
    for name in "abcde":
        await talk("POST", WIDGETS_PATH, widget(name))
    first = (await talk("GET", f"{WIDGETS_PATH}?limit=2")).body
    await talk("POST", WIDGETS_PATH, widget("bb"))
    await talk("DELETE", f"{WIDGETS_PATH}/d")
    await talk("PATCH", f"{WIDGETS_PATH}/e", {"spec": {"size": 5}}, content_type=MERGE)
    token = quote(first["metadata"]["continue"])
    second = await talk.api.ok("GET", f"{WIDGETS_PATH}?limit=2&continue={token}".replace("{ns}", talk.namespace))
    third = await talk.api.ok(
        "GET",
        f"{WIDGETS_PATH}?limit=2&continue={quote(second['metadata']['continue'])}".replace("{ns}", talk.namespace),
    )
    assert [item["metadata"]["name"] for item in second["items"] + third["items"]] == ["c", "d", "e"]
    assert third["items"][0]["spec"]["size"] == 1
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert not third["metadata"].get("continue")
    await talk("GET", f"{WIDGETS_PATH}?limit=2&continue=nonsense")
    await talk("GET", f"{WIDGETS_PATH}?limit=-1")
    await talk("GET", f"{WIDGETS_PATH}?limit=x")
    selected = await talk.api.ok("GET", f"{WIDGETS_PATH}?limit=1&labelSelector=a".replace("{ns}", talk.namespace))
    assert selected["items"] == []
    version = first["metadata"]["resourceVersion"]
    for query in (
        f"resourceVersion={version}&resourceVersionMatch=Exact",
        f"resourceVersion={version}&resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact",
        f"resourceVersion={version}&resourceVersionMatch=Sometimes",
        "resourceVersion=x",
        "resourceVersion=0",
        f"resourceVersion={version}&continue={token}",
    ):
        answer = await talk.api("GET", f"{WIDGETS_PATH}?{query}".replace("{ns}", talk.namespace))
        told = query.replace(version, "VERSION").replace(token, "TOKEN")
        body = answer.body
        if answer.code == 200:
            body = [item["metadata"]["name"] for item in body["items"]]
        talk.say(told, [answer.code, body])


async def test_a_token_whose_version_is_forgotten_is_answered_410(api: Any, namespace: str, target: Any) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    for name in "abc":
        await api.ok("POST", path, widget(name))
    first = await api.ok("GET", f"{path}?limit=1")
    target.forget()
    answer = await api("GET", f"{path}?limit=1&continue={quote(first['metadata']['continue'])}")
    assert (answer.code, answer.body.get("reason"), answer.body.get("code")) == (410, "Expired", 410), answer
    assert "The provided continue parameter is too old to display a consistent list result" in answer.body["message"]
    # The error carries a token to go on with, inconsistently, from where the list was.
    on = await api.ok("GET", f"{path}?continue={quote(answer.body['metadata']['continue'])}")
    assert [item["metadata"]["name"] for item in on["items"]] == ["b", "c"]
    exact = first["metadata"]["resourceVersion"]
    answer = await api("GET", f"{path}?resourceVersion={exact}&resourceVersionMatch=Exact")
    assert (answer.code, answer.body["reason"]) == (410, "Expired")


async def test_a_version_from_the_future_is_refused(api: Any, namespace: str) -> None:
    path = WIDGETS_PATH.replace("{ns}", namespace)
    now = int((await api.ok("GET", path))["metadata"]["resourceVersion"])
    answer = await api("GET", f"{path}?resourceVersion={now + 10**6}&resourceVersionMatch=NotOlderThan")
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert answer.body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]


async def test_tables(talk: Any) -> None:
    await talk("POST", WIDGETS_PATH, widget(size=7))
    await talk("PATCH", f"{WIDGETS_PATH}/a/status", {"status": {"phase": "Up"}}, content_type=MERGE)
    for form in (TABLE, PARTIAL_LIST):
        await talk.api("GET", WIDGETS_PATH.replace("{ns}", talk.namespace), accept=form)
    for form, path in ((TABLE, f"{WIDGETS_PATH}/a"), (PARTIAL, f"{WIDGETS_PATH}/a"), (PARTIAL_LIST, WIDGETS_PATH)):
        await talk("GET", path, accept=form)
    table = (await talk.api("GET", f"{WIDGETS_PATH}/a".replace("{ns}", talk.namespace), accept=TABLE)).body
    [row] = table["rows"]
    talk.say("columns", table["columnDefinitions"])
    talk.say("cells", row["cells"][:-1])
    talk.say("object", row["object"])


async def test_tables_of_builtin_kinds_have_the_same_columns(talk: Any) -> None:
    for path in (
        "/api/v1/pods", "/api/v1/nodes", "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/secrets",
        "/api/v1/services", "/api/v1/events", "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes",
        "/api/v1/serviceaccounts", "/api/v1/endpoints", "/api/v1/resourcequotas", "/apis/apps/v1/deployments",
        "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs",
        "/apis/coordination.k8s.io/v1/leases", "/apis/discovery.k8s.io/v1/endpointslices",
        "/apis/storage.k8s.io/v1/storageclasses", "/apis/rbac.authorization.k8s.io/v1/roles",
        "/apis/networking.k8s.io/v1/networkpolicies", "/apis/policy/v1/poddisruptionbudgets",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ):  # fmt: skip
        answer = await talk.api("GET", f"{path}?limit=1", accept=TABLE)
        talk.say(path, [[c["name"], c["type"], c["format"], c["priority"]] for c in answer.body["columnDefinitions"]])
