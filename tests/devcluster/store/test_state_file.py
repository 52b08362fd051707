"""The state file: what survives a restart, and what happens to a damaged one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gryvia_devcluster.store import DamagedState, Key, StateFile, Store


def obj(name: str, value: int = 0) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": name}, "value": value}


def put(store: Store, name: str, value: int = 0) -> int:
    return store.put("configmaps", Key("n", name), obj(name, value)).rv


async def test_objects_and_versions_survive_a_restart(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.sqlite")
    store = Store(file=file)
    for name in "abc":
        put(store, name, 1)
    entry = store.get("configmaps", Key("n", "b"))
    assert entry is not None
    store.remove("configmaps", entry.key, entry.obj)
    last = put(store, "a", 2)
    await file.close()

    again = StateFile(tmp_path / "s.sqlite")
    restored = Store(file=again)
    assert {e.key.name: e.obj["value"] for e in restored.entries("configmaps")} == {"a": 2, "c": 1}
    assert restored.entries("configmaps")[0].obj["metadata"]["resourceVersion"] == str(last)
    assert put(restored, "d") > last
    await again.close()


async def test_a_crash_never_makes_a_version_come_twice(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.sqlite")
    store = Store(file=file)
    put(store, "a")
    await file.flush()
    lost = put(store, "b")  # never flushed: the process dies here

    again = StateFile(tmp_path / "s.sqlite")
    restored = Store(file=again)
    assert [e.key.name for e in restored.entries("configmaps")] == ["a"]
    assert put(restored, "c") > lost
    await again.close()
    file._db.close()


async def test_a_write_that_fails_is_kept_and_written_later(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.sqlite")
    store = Store(file=file)
    put(store, "a", 1)
    file._db.execute("CREATE TRIGGER full BEFORE INSERT ON objects BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(sqlite3.Error, match="disk full"):
        await file.flush()
    put(store, "a", 2)
    file._db.execute("DROP TRIGGER full")
    await file.close()

    again = StateFile(tmp_path / "s.sqlite")
    assert [e.obj["value"] for e in Store(file=again).entries("configmaps")] == [2]
    await again.close()


@pytest.mark.parametrize(
    "damage", [b"not a database at all, but long enough" * 40, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_damaged_file_is_one_clear_sentence(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "s.sqlite"
    path.write_bytes(damage)
    with pytest.raises(DamagedState, match=r"^The state file .*s\.sqlite is damaged \(.*\): move it away.*\.$"):
        StateFile(path)


async def test_a_body_that_is_not_an_object_is_damage_too(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "s.sqlite")
    file._db.execute("INSERT INTO objects VALUES ('pods', 'n', 'x', 1, '[]')")
    with pytest.raises(DamagedState):
        Store(file=file)
    await file.close()
