"""Server-side apply: who owns what, conflicts and their words, and how other writes take fields over."""

from __future__ import annotations

from typing import Any

from tools.realcluster.http import APPLY, MERGE

from .widgets import CONFIG_MAPS_PATH, WIDGETS_PATH, widget


class Applying:
    """Apply as a manager, to one widget."""

    def __init__(self, talk: Any, path: str = f"{WIDGETS_PATH}/a") -> None:
        self._talk = talk
        self._path = path

    async def __call__(self, manager: str, options: str = "", subresource: str = "", **spec: Any) -> Any:
        body = {**widget(), "spec": spec} if not subresource else {**widget(), "spec": None, "status": spec}
        if body["spec"] is None:
            del body["spec"]
        return await self.body(manager, body, options, subresource)

    async def body(self, manager: str, body: Any, options: str = "", subresource: str = "") -> Any:
        path = f"{self._path}/{subresource}" if subresource else self._path
        return await self._talk("PATCH", f"{path}?fieldManager={manager}{options}", body, content_type=APPLY)


async def test_apply_creates_changes_and_gives_up_fields(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1, labels={"x": "1", "y": "2"}, tags=["a", "b"])
    await apply("one", size=1, labels={"x": "1", "y": "2"}, tags=["a", "b"])
    await apply("one", size=2, labels={"x": "1"}, tags=["b", "c"])
    await apply("two", size=2, labels={"z": "3"}, tags=["d"])
    await apply("two", size=2)
    await apply("one", size=2)
    await apply("one")
    await apply("two")


async def test_conflicts_name_every_field_and_manager(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1, color="red", ports=[{"name": "a", "number": 1}], atomic={"a": "1"}, free={"x": {"y": 1}})
    await apply("two", size=2)
    await apply(
        "two", size=2, color="blue", ports=[{"name": "a", "number": 2}], atomic={"b": "1"}, free={"x": {"y": 2}}
    )
    await apply("two", size=1)
    await apply("three", size=3)
    await apply("two", "&force=true", size=4, color="blue")
    await apply("one", size=1)
    await apply("one", "&force=true", size=1)


async def test_lists_and_maps_are_merged_as_their_schema_says(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1, ports=[{"name": "a", "number": 1}, {"name": "b"}], list=[1, 2])
    await apply("two", size=1, ports=[{"name": "c", "number": 3}, {"name": "a", "note": "n"}])
    await apply("two", size=1, list=[1, 2])
    await apply("two", size=1, list=[3])
    await apply("one", size=1, ports=[{"name": "b"}])
    await apply("one", size=1, ports=[{"name": "b"}, {"name": "b"}])
    await apply("one", size=1, tags=["x", "x"])
    await apply("one", size=1, ports=[{"number": 1}])


async def test_an_update_takes_over_what_it_changes(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1, color="blue", labels={"x": "1"})
    await talk("PATCH", f"{WIDGETS_PATH}/a?fieldManager=patcher", {"spec": {"size": 2}}, content_type=MERGE)
    await apply("one", size=1)
    await apply("one", "&force=true", size=1)
    await talk("PATCH", f"{WIDGETS_PATH}/a?fieldManager=patcher", {"spec": {"labels": {"x": None}}}, content_type=MERGE)
    read = (await talk("GET", f"{WIDGETS_PATH}/a")).body
    await talk("PUT", f"{WIDGETS_PATH}/a?fieldManager=putter", {**read, "spec": {"size": 7, "list": [1]}})
    await talk("PUT", f"{WIDGETS_PATH}/a?fieldManager=putter", {**read, "spec": {"size": 8}})


async def test_status_is_owned_apart(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1)
    await apply("ctl", subresource="status", phase="Up", conditions=[{"type": "A", "status": "True"}])
    await apply("other", subresource="status", conditions=[{"type": "B", "status": "False"}])
    await apply("other", subresource="status", phase="Down")
    await apply("ctl", subresource="status", phase="Up")
    await apply.body("one", {**widget(), "spec": {"size": 1}, "status": {"phase": "Ignored"}})
    await talk("PATCH", f"{WIDGETS_PATH}/a/status?fieldManager=m", {"status": {"phase": "X"}}, content_type=MERGE)
    await talk("PATCH", f"{WIDGETS_PATH}/nobody/status?fieldManager=m", widget("nobody"), content_type=APPLY)


async def test_metadata_is_owned_field_by_field(talk: Any) -> None:
    apply = Applying(talk)
    config = (await talk("POST", CONFIG_MAPS_PATH, {"metadata": {"name": "c"}})).body
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": config["metadata"]["uid"]}

    def body(**metadata: Any) -> Any:
        return {**widget(), "metadata": {"name": "a", **metadata}}

    await apply.body("one", body(labels={"a": "1"}, annotations={"n": "1"}, finalizers=["example.com/a"]))
    await apply.body("two", body(labels={"b": "2"}, finalizers=["example.com/b"], ownerReferences=[owner]))
    await apply.body("two", body(labels={"a": "2"}))
    await apply.body("two", body(ownerReferences=[{**owner, "name": "d"}]))
    await apply.body("one", body(labels={}))
    await apply.body("two", body())
    await apply.body("one", body(managedFields=[]))
    await apply.body("one", body(uid="another"))
    await apply.body("one", body(resourceVersion="1"))


async def test_what_an_apply_must_have(talk: Any) -> None:
    apply = Applying(talk)
    await talk("PATCH", f"{WIDGETS_PATH}/a", widget(), content_type=APPLY)
    await talk("PATCH", f"{WIDGETS_PATH}/a?fieldManager=", widget(), content_type=APPLY)
    await talk("PATCH", f"{WIDGETS_PATH}/a?fieldManager={'x' * 129}", widget(), content_type=APPLY)
    await apply.body("one", {"metadata": {"name": "a"}, "spec": {"size": 1}})
    await apply.body("one", {**widget("b")})
    await apply.body("one", {**widget(), "kind": "Gadget"})
    await apply.body("one", {"apiVersion": "example.com/v1", "kind": "Widget"})
    await apply.body("one", b"a: [")
    await apply.body("one", b"")
    await apply.body("one", {**widget(), "spec": {"size": 1, "unknown": 2}}, "&fieldValidation=Strict")
    await apply.body("one", {**widget(), "spec": {"size": 1, "unknown": 2}}, "&fieldValidation=Warn")
    await apply.body("one", {**widget(), "spec": {"size": 0}})
    await apply.body("one", {**widget(), "spec": {"size": "x"}})
    await talk("PATCH", f"{WIDGETS_PATH}/a?force=true", {"spec": {"size": 2}}, content_type=MERGE)
    await apply.body("one", b"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 6}\n")
    await apply.body("one", widget(size=9), "&dryRun=All")
    await apply.body("one", widget(size=9), "&dryRun=All&force=true")


async def test_applied_defaults_belong_to_nobody(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1, ports=[{"name": "a"}])
    await apply("two", size=1, color="blue", frame={"wood": "ash"})
    await apply("two", size=1)
    await apply("one", size=1, maybe=None)


async def test_builtin_objects(talk: Any) -> None:
    apply = Applying(talk, f"{CONFIG_MAPS_PATH}/c")

    def body(**data: str) -> Any:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}

    await apply.body("one", body(a="1", b="2"))
    await apply.body("two", body(a="2"))
    await apply.body("two", body(c="3"))
    await apply.body("one", body(a="1"))
    await apply.body("one", {**body(), "unknown": 1})
    await apply.body("one", {**body(), "data": {"a": 1}})
    for wrong in (1.5, True, ["x"], {"d": "e"}):
        await apply.body("one", {**body(), "data": {"a": wrong}})
    await apply.body("one", {**body(), "data": "text"})
    await apply.body("one", {**body(), "metadata": {"name": "c", "labels": {"a": 1}}})
    await apply.body("one", {**body(), "metadata": {"name": "c", "finalizers": "x"}})
    await apply.body("one", {**body(), "immutable": "yes"})


async def test_a_value_of_another_type_is_nobodys(talk: Any) -> None:
    apply = Applying(talk)
    for spec in (
        {"size": "x"},
        {"size": True},
        {"color": 5},
        {"tags": "a"},
        {"tags": [1]},
        {"labels": {"a": 1}},
        {"ports": {}},
        {"ports": [{"name": 1}]},
        {"free": 1},
        {"amount": 1.5},
        {"frame": "oak"},
    ):
        await apply("one", **spec)


async def test_managed_fields_can_be_cleared_and_not_forged(talk: Any) -> None:
    apply = Applying(talk)
    await apply("one", size=1)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"managedFields": [{}]}}, content_type=MERGE)
    await apply("two", size=2)
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"managedFields": None}}, content_type=MERGE)
    wrong = {"manager": "m", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV9"}
    await talk("PATCH", f"{WIDGETS_PATH}/a", {"metadata": {"managedFields": [wrong]}}, content_type=MERGE)
