"""The client's verbs against devcluster, which behaves as an API server does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gryvia_common.clock import SystemClock
from gryvia_common.errors import Conflict, Gone, Terminal, Transient
from gryvia_common.kube.client import Kube, KubeSettings
from gryvia_common.kube.objects import Json, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS, DEPLOYMENTS, GROUP, JOBS, SECRETS, Resource
from gryvia_devcluster.cluster import DevCluster
from gryvia_devcluster.settings import Settings


@pytest.fixture
async def kube(tmp_path: Path) -> AsyncIterator[Kube]:
    async with DevCluster(Settings(data_dir=tmp_path, controllers=False, node=False)) as cluster:
        await cluster.write_kubeconfig(tmp_path / "kubeconfig")
        settings = KubeSettings(kubeconfig=tmp_path / "kubeconfig")
        made = await Kube.connect(settings, user_agent="test", clock=SystemClock())
        yield made
        await made.close()


def config_map(name: str, **data: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", "name": name, "labels": {"app": "a"}},
        "data": data,
    }


async def test_create_get_list_delete(kube):
    created = await kube.create(CONFIG_MAPS, config_map("one", a="1"))
    with pytest.raises(Conflict, match="already exists"):
        await kube.create(CONFIG_MAPS, config_map("one"))
    assert await kube.get(CONFIG_MAPS, "default", "one") == created
    await kube.create(CONFIG_MAPS, config_map("two"))
    assert [o["metadata"]["name"] for o in await kube.list(CONFIG_MAPS, "default", labels="app=a")] == ["one", "two"]
    assert await kube.list(CONFIG_MAPS, labels="app=b") == []
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, "default", "one", uid="another")
    await kube.delete(CONFIG_MAPS, "default", "one", uid=uid_of(created))
    with pytest.raises(Gone):
        await kube.get(CONFIG_MAPS, "default", "one")
    with pytest.raises(Gone):
        await kube.delete(CONFIG_MAPS, "default", "one")


async def test_a_patch_with_a_version_is_a_compare_and_set(kube):
    created = await kube.create(CONFIG_MAPS, config_map("one", a="1"))
    body = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    changed = await kube.patch(CONFIG_MAPS, "default", "one", body)
    assert changed["data"] == {"a": "2"}
    with pytest.raises(Conflict):
        await kube.patch(CONFIG_MAPS, "default", "one", body)


async def test_apply_creates_and_a_second_time_changes_nothing(kube):
    first = await kube.apply(CONFIG_MAPS, config_map("one", a="1"), manager="gryvia-jobs")
    again = await kube.apply(CONFIG_MAPS, config_map("one", a="1"), manager="gryvia-jobs")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    with pytest.raises(Conflict, match="gryvia-jobs"):
        await kube.apply(CONFIG_MAPS, config_map("one", a="2"), manager="other", force=False)
    forced = await kube.apply(CONFIG_MAPS, config_map("one", a="2"), manager="other")
    assert forced["data"] == {"a": "2"}


async def test_an_invalid_object_is_terminal_and_the_message_names_the_field(kube):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "default", "name": "j"}}
    spec = {"template": {"spec": {"restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}]}}}
    with pytest.raises(Terminal, match="restartPolicy") as caught:
        await kube.apply(JOBS, {**job, "spec": spec}, manager="gryvia-jobs")
    assert caught.value.reason == "Invalid"
    with pytest.raises(Gone, match="namespace"):
        await kube.create(CONFIG_MAPS, {**config_map("x"), "metadata": {"namespace": "absent", "name": "x"}})


async def test_a_list_of_many_pages_is_of_one_version(kube):
    for number in range(7):
        await kube.create(CONFIG_MAPS, config_map(f"c{number}"))
    first = await kube.list_page(CONFIG_MAPS, "default", labels="app=a", limit=3)
    await kube.create(CONFIG_MAPS, config_map("late"))
    pages = [first]
    while pages[-1].following:
        pages.append(
            await kube.list_page(CONFIG_MAPS, "default", labels="app=a", limit=3, following=pages[-1].following)
        )
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert {page.version for page in pages} == {first.version}


async def test_a_type_that_is_not_served(kube):
    absent = Resource(GROUP, "v1", "absents", "Absent")
    with pytest.raises(Gone):
        await kube.list(absent)
    with pytest.raises((Gone, Transient)):
        await kube.get(absent, "default", "x")


async def test_metadata_only_lists_carry_no_secret(kube):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "s"}}
    await kube.create(SECRETS, {**secret, "stringData": {"password": "hunter2"}})
    page = await kube.list_page(SECRETS, metadata_only=True)
    [item] = [item for item in page.items if item["metadata"]["name"] == "s"]
    assert set(item) == {"apiVersion", "kind", "metadata"}
    assert (item["apiVersion"], item["kind"]) == ("v1", "Secret")


async def test_a_watch_shows_what_comes_after_its_version(kube):
    page = await kube.list_page(CONFIG_MAPS)
    lines = kube.watch(CONFIG_MAPS, page.version)
    await kube.create(CONFIG_MAPS, config_map("one"))
    [line] = await anext(lines)
    assert b'"ADDED"' in line
    assert b'"one"' in line
    await lines.aclose()


async def test_a_deployments_status_is_a_subresource(kube):
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    meta = {"namespace": "default", "name": "d"}
    await kube.create(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    patched = await kube.patch(DEPLOYMENTS, "default", "d", {"status": {"replicas": 1}}, subresource="status")
    assert patched["status"]["replicas"] == 1
    assert patched["metadata"]["generation"] == 1
