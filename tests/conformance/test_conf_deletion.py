"""Owners and dependents: the three cascades, blocked owners, dead owners, and namespaces that go."""

from __future__ import annotations

from typing import Any

from tools.realcluster.http import MERGE

from .widgets import CONFIG_MAPS_PATH, WIDGETS_PATH, until, widget


def reference(owner: Any, **more: Any) -> Any:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"], **more}


class Family:
    """Config maps, of which some own others. (A real collector learns of new types every thirty seconds only.)"""

    def __init__(self, api: Any, namespace: str) -> None:
        self.api = api
        self.path = CONFIG_MAPS_PATH.replace("{ns}", namespace)

    async def make(self, name: str, *owners: Any, **metadata: Any) -> Any:
        body = {"metadata": {"name": name, "ownerReferences": list(owners), **metadata}}
        return {"apiVersion": "v1", "kind": "ConfigMap", **await self.api.ok("POST", self.path, body)}

    async def delete(self, name: str, policy: str = "") -> Any:
        return await self.api.ok("DELETE", f"{self.path}/{name}", {"propagationPolicy": policy} if policy else None)

    async def get(self, name: str) -> Any:
        """None when it is gone."""
        answer = await self.api("GET", f"{self.path}/{name}")
        return None if answer.code == 404 else answer.body

    async def gone(self, *names: str) -> None:
        for name in names:

            async def check(name: str = name) -> bool:
                return await self.get(name) is None

            await until(check)


async def test_background_deletes_the_owner_at_once_and_then_its_dependents(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a = await family.make("a")
    b = await family.make("b", reference(a))
    await family.make("c", reference(b))
    await family.make("d")
    await family.delete("a", "Background")
    assert await family.get("a") is None
    await family.gone("b", "c")
    assert await family.get("d") is not None


async def test_foreground_waits_for_the_dependents_that_block(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a = await family.make("a")
    await family.make("b", reference(a, blockOwnerDeletion=True), finalizers=["example.com/hold"])
    await family.make("c", reference(a), finalizers=["example.com/hold"])
    await family.delete("a", "Foreground")
    marked = await family.get("a")
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0

    async def marked_too() -> bool:
        return "deletionTimestamp" in (await family.get("b"))["metadata"]

    await until(marked_too)
    assert await family.get("a") is not None
    free = {"metadata": {"finalizers": None}}
    await api.ok("PATCH", f"{family.path}/b", free, content_type=MERGE)
    await family.gone("b", "a")
    await api.ok("PATCH", f"{family.path}/c", free, content_type=MERGE)
    await family.gone("c")


async def test_orphan_lets_the_dependents_go_free(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a, other = await family.make("a"), await family.make("other")
    await family.make("b", reference(a), reference(other))
    await family.make("c", reference(a))
    await family.delete("a", "Orphan")
    await family.gone("a")
    b, c = await family.get("b"), await family.get("c")
    assert [owner["name"] for owner in b["metadata"]["ownerReferences"]] == ["other"]
    assert not c["metadata"].get("ownerReferences")


async def test_a_dependent_lives_as_long_as_one_of_its_owners(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a, b = await family.make("a"), await family.make("b")
    await family.make("c", reference(a), reference(b))
    await family.delete("a", "Background")

    async def one_owner() -> bool:
        return len((await family.get("c"))["metadata"]["ownerReferences"]) == 1

    await until(one_owner)
    await family.delete("b", "Background")
    await family.gone("c")


async def test_an_owner_that_never_was_takes_its_dependents(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
    await family.make("a", reference(ghost))
    await family.gone("a")


async def test_another_uid_under_the_same_name_is_no_owner(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a = await family.make("a")
    await family.make("b", {**reference(a), "uid": "another"})
    await family.gone("b")
    assert await family.get("a") is not None


async def test_the_default_cascade_is_background(api: Any, namespace: str) -> None:
    family = Family(api, namespace)
    a = await family.make("a")
    await family.make("b", reference(a))
    await family.delete("a")
    assert await family.get("a") is None
    await family.gone("b")


async def test_a_namespace_goes_with_all_that_is_in_it(api: Any, namespace: str, target: Any) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    widgets = WIDGETS_PATH.replace("{ns}", namespace)
    await api.ok("POST", widgets, {**widget(), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}})
    await api.ok("POST", f"{path}/configmaps", {"metadata": {"name": "c"}})
    deleted = await api.ok("DELETE", path)
    assert deleted["status"]["phase"] == "Terminating"
    assert deleted["spec"]["finalizers"] == ["kubernetes"]
    refused = await api("POST", f"{path}/configmaps", {"metadata": {"name": "late"}})
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    expected = f'configmaps "late" is forbidden: unable to create new content in namespace {namespace} because it is being terminated'
    assert refused.body["message"] == expected
    assert refused.body["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
    ]

    async def emptied() -> bool:
        marked = "deletionTimestamp" in (await api.ok("GET", f"{widgets}/a"))["metadata"]
        return marked and (await api("GET", f"{path}/configmaps/c")).code == 404

    await until(emptied)

    async def told() -> bool:
        conditions = (await api.ok("GET", path))["status"].get("conditions") or ()
        states = {condition["type"]: condition["status"] for condition in conditions}
        return states.get("NamespaceFinalizersRemaining") == "True"

    if target.real:  # devcluster empties a namespace as well, and does not report on it
        await until(told)
    await api.ok("PATCH", f"{widgets}/a", {"metadata": {"finalizers": None}}, content_type=MERGE)

    async def gone() -> bool:
        return (await api("GET", path)).code == 404

    await until(gone)


async def test_namespaces(talk: Any, api: Any) -> None:
    await talk("POST", "/api/v1/namespaces", {"metadata": {"name": "{ns}-more"}})
    await talk("DELETE", "/api/v1/namespaces/default")
    await talk("POST", "/api/v1/namespaces/nowhere/configmaps", {"metadata": {"name": "a"}})
    await talk("POST", "/apis/example.com/v1/namespaces/nowhere/widgets", widget())
    await talk("GET", "/api/v1/namespaces/nowhere/configmaps/a")
    await talk("POST", "/api/v1/namespaces", {"metadata": {"name": "Upper"}})
