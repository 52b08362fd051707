"""The cache never goes back in time and always knows whom a change concerns."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_common.kube.children import OWNER
from gryvia_common.kube.objects import Json, Key
from gryvia_common.kube.resources import JOBS
from gryvia_common.runtime.cache import REMEMBERED_REMOVALS, ObjectCache
from gryvia_common.runtime.controller import Index, Selection

KEY = Key("ns", "a")


def obj(name: str = "a", *, uid: str = "u1", version: int = 1, owner: str = "") -> Json:
    annotations = {OWNER: owner} if owner else {}
    meta = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version), "annotations": annotations}
    return {"metadata": meta}


def test_an_older_state_never_replaces_a_newer_one() -> None:
    cache = ObjectCache()
    assert cache.put("jobs", obj(version=5))
    assert cache.put("jobs", obj(version=4)) is None
    assert cache.put("jobs", obj(version=5)) is None
    found = cache.get("jobs", KEY)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "5"


def test_versions_compare_as_numbers_not_as_text() -> None:
    cache = ObjectCache()
    cache.put("jobs", obj(version=9))
    assert cache.put("jobs", obj(version=10))


def test_a_new_object_of_the_same_name_replaces_the_old_one_and_a_late_echo_of_the_old_one_does_not_return() -> None:
    cache = ObjectCache()
    cache.put("jobs", obj(uid="old", version=5))
    assert cache.put("jobs", obj(uid="new", version=7))
    assert cache.put("jobs", obj(uid="old", version=6)) is None
    assert cache.uid("jobs", KEY) == "new"
    assert cache.remove("jobs", KEY, "old", 8) is None
    assert cache.uid("jobs", KEY) == "new"


def test_a_removed_object_is_not_resurrected_by_a_late_message() -> None:
    cache = ObjectCache()
    cache.put("jobs", obj(version=5))
    assert cache.remove("jobs", KEY, "u1", 6)
    assert cache.put("jobs", obj(version=5)) is None
    assert cache.get("jobs", KEY) is None


def test_children_are_found_by_owner_and_only_those_of_the_owner_that_lives_now() -> None:
    cache = ObjectCache()
    cache.put("pods", obj("p1", owner="gryviaaijobs/ns/train/uid-1"))
    cache.put("pods", obj("p0", owner="gryviaaijobs/ns/train/uid-1"))
    cache.put("pods", obj("old", owner="gryviaaijobs/ns/train/uid-0"))
    owner = ("gryviaaijobs", "ns", "train")
    assert [o["metadata"]["name"] for o in cache.children(owner, "uid-1", "pods")] == ["p0", "p1"]
    change = cache.remove("pods", Key("ns", "p0"), "u1", 9)
    assert change is not None
    assert change.owner == owner
    assert [o["metadata"]["name"] for o in cache.children(owner, "uid-1", "pods")] == ["p1"]


def test_after_a_wipe_the_replay_confirms_what_it_names_and_the_rest_is_gone() -> None:
    cache = ObjectCache()
    cache.put("jobs", obj("kept", version=5))
    cache.put("jobs", obj("lost", version=6))
    cache.begin_replay()
    assert cache.put("jobs", obj("kept", version=5)) is None
    assert [change.object for change in cache.end_replay()] == [("jobs", Key("ns", "lost"))]
    assert cache.get("jobs", Key("ns", "kept")) is not None


def test_what_is_remembered_of_the_dead_is_bounded() -> None:
    cache = ObjectCache()
    for number in range(REMEMBERED_REMOVALS + 500):
        key = Key("ns", f"n{number}")
        cache.put("jobs", obj(key.name, version=number + 1))
        cache.remove("jobs", key, "u1", number + 1)
    assert len(cache) == 0
    assert len(cache._removed) == REMEMBERED_REMOVALS


@given(st.permutations(range(1, 8)))
def test_any_order_of_delivery_ends_in_the_newest_state(order: list[int]) -> None:
    cache = ObjectCache()
    for version in order:
        cache.put("jobs", obj(version=version))
    found = cache.get("jobs", KEY)
    assert found is not None
    assert found["metadata"]["resourceVersion"] == "7"


def test_children_are_named_without_being_decoded_and_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass over 20,000 children pays for those it looks at."""
    cache = ObjectCache()
    for number in range(20_000):
        cache.put("pods", obj(f"p{number}", uid=f"u{number}", owner="gryviaaijobs/ns/train/uid-1"))
    decoded: list[bytes] = []
    monkeypatch.setattr("gryvia_common.runtime.cache._decode", lambda body: decoded.append(body) or orjson.loads(body))
    found = cache.children(("gryviaaijobs", "ns", "train"), "uid-1", "pods")
    assert len(found) == len(set(found.names)) == 20_000
    assert decoded == []
    cache.remove("pods", Key("ns", "p7"), "u7", 9)
    for name in ("p7", "p19999", "p7"):
        one = found.named(name)
        assert one is not None
        assert one["metadata"]["name"] == name
    assert found.named("q") is None
    assert len(decoded) == 2


def by_color(obj: Json) -> list[str]:
    return [f"ns/{color}" for color in obj["spec"]["colors"]]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["u1", "u2"]),
            st.sets(st.sampled_from("rgb")),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_an_index_finds_exactly_what_says_so_and_every_change_names_the_old_and_the_new_keys(
    steps: list[tuple[str, str, set[str], bool]],
) -> None:
    cache = ObjectCache([Index("color", JOBS, by_color)])
    said: dict[str, tuple[str, set[str]]] = {}
    for version, (name, uid, colors, removed) in enumerate(steps, start=1):
        _, before = said.get(name, ("", set[str]()))
        if removed:
            known = said.get(name)
            change = cache.remove("jobs", Key("ns", name), uid, version)
            assert (change is not None) == (known is not None and known[0] == uid)
            if change is None:
                continue
            del said[name]
            colors = set()
        else:
            change = cache.put("jobs", {**obj(name, uid=uid, version=version), "spec": {"colors": sorted(colors)}})
            assert change is not None
            before = before if said.get(name, ("",))[0] == uid else set()
            said[name] = (uid, colors)
        assert change.selections >= {Selection("color", f"ns/{color}") for color in before | colors}
        for color in "rgb":
            found = list(cache.select(Selection("color", f"ns/{color}")).names)
            assert found == sorted(name for name, (_, colors) in said.items() if color in colors)
