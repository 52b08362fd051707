"""What goes when its owner goes, and what a deleted namespace takes with it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def thing(name: str, *owners: Json, block: bool = False, **meta: Any) -> Json:
    references = [
        {
            "apiVersion": "v1",
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            **({"blockOwnerDeletion": True} if block else {}),
        }
        for owner in owners
    ]
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}}
    if references:
        body["metadata"]["ownerReferences"] = references
    return body


async def test_a_dependent_goes_with_its_last_owner_only(cluster: Any) -> None:
    one, two = (cluster.create(thing(name)) for name in ("one", "two"))
    cluster.create(thing("child", one, two))
    await cluster.settle()
    cluster.delete("ConfigMap", "one")
    await cluster.settle()
    child = cluster.get("ConfigMap", "child")
    assert [ref["name"] for ref in child["metadata"]["ownerReferences"]] == ["two"]
    cluster.delete("ConfigMap", "two")
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "child")


async def test_a_chain_of_dependents_goes_in_the_background(cluster: Any) -> None:
    parent = cluster.create(thing("parent"))
    child = cluster.create(thing("child", parent))
    cluster.create(thing("grandchild", child))
    await cluster.settle()
    cluster.delete("ConfigMap", "parent", propagation="Background")
    assert not cluster.exists("ConfigMap", "parent")
    await cluster.settle()
    assert [o["metadata"]["name"] for o in cluster.all("ConfigMap") if "child" in o["metadata"]["name"]] == []


async def test_foreground_deletion_keeps_the_owner_until_its_blocking_dependents_are_gone(cluster: Any) -> None:
    parent = cluster.create(thing("parent"))
    cluster.create(thing("held", parent, block=True, finalizers=["test/hold"]))
    cluster.create(thing("free", parent))
    await cluster.settle()
    cluster.delete("ConfigMap", "parent", propagation="Foreground")
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "free")
    assert cluster.exists("ConfigMap", "held")
    assert cluster.exists("ConfigMap", "parent")
    cluster.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "parent")


async def test_orphan_deletion_leaves_the_dependents_without_a_reference(cluster: Any) -> None:
    parent = cluster.create(thing("parent"))
    cluster.create(thing("child", parent))
    await cluster.settle()
    cluster.delete("ConfigMap", "parent", propagation="Orphan")
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "parent")
    assert "ownerReferences" not in cluster.get("ConfigMap", "child")["metadata"]


async def test_an_owner_that_does_not_exist_or_has_another_uid_is_absent(cluster: Any) -> None:
    real = cluster.create(thing("real"))
    ghost = {"kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "none"}}
    impostor = {"kind": "ConfigMap", "metadata": {"name": "real", "uid": "another"}}
    cluster.create(thing("of-ghost", ghost))
    cluster.create(thing("of-impostor", impostor))
    cluster.create(thing("of-real", real))
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "of-ghost")
    assert not cluster.exists("ConfigMap", "of-impostor")
    assert cluster.exists("ConfigMap", "of-real")


async def test_an_owner_in_another_namespace_counts_as_absent(cluster: Any) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}, None)
    owner = cluster.create(thing("owner"), "other")
    cluster.create(thing("child", owner))
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "child")


async def test_a_deleted_namespace_is_emptied_and_then_goes(cluster: Any) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, None)
    cluster.create(thing("plain"), "team")
    cluster.create(thing("held", finalizers=["test/hold"]), "team")
    await cluster.settle()
    cluster.delete("Namespace", "team", None)
    await cluster.settle()
    assert cluster.get("Namespace", "team", None)["status"]["phase"] == "Terminating"
    assert not cluster.exists("ConfigMap", "plain", "team")
    cluster.patch("ConfigMap", "held", {"metadata": {"finalizers": None}}, namespace="team")
    await cluster.settle()
    assert not cluster.exists("Namespace", "team", None)


async def test_a_namespace_with_a_running_job_goes_once_its_pods_have_ended(cluster: Any) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, None)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    cluster.create(job, "team")
    await cluster.settle()
    (pod,) = cluster.all("Pod", "team")
    cluster.patch("Pod", pod["metadata"]["name"], {"spec": {"nodeName": "here"}}, namespace="team")
    cluster.delete("Namespace", "team", None)
    await cluster.settle()
    assert cluster.exists("Namespace", "team", None)
    for pod in cluster.all("Pod", "team"):
        cluster.delete("Pod", pod["metadata"]["name"], "team", grace_seconds=0)
    await cluster.settle()
    assert not cluster.exists("Namespace", "team", None)


async def test_objects_of_a_type_that_came_later_own_and_are_collected_too(cluster: Any) -> None:
    names = {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    definitions = cluster.api.resource("apiextensions.k8s.io", "customresourcedefinitions")
    cluster.api.create(definitions, None, definition)
    await cluster.settle()
    toys = cluster.api.resource("example.dev", "toys")
    toy = {"apiVersion": "example.dev/v1", "kind": "Toy", "metadata": {"name": "toy"}}
    owner = cluster.api.create(toys, "default", toy)
    child = thing("child", owner)
    child["metadata"]["ownerReferences"][0]["apiVersion"] = "example.dev/v1"
    cluster.create(child)
    await cluster.settle()
    assert cluster.exists("ConfigMap", "child")
    cluster.api.delete(toys, "default", "toy")
    await cluster.settle()
    assert not cluster.exists("ConfigMap", "child")
