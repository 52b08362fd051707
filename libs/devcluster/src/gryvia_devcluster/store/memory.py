"""The objects themselves: one table per resource type, one version counter for the whole server.

Invariant: resource versions grow by one per write over all types, so they order every change, and an object handed out is
never changed afterwards (a write puts a new one in its place). A past state is rebuilt by undoing the history, so a
paginated LIST needs no stored snapshots and expires exactly when the history does.
"""

from __future__ import annotations

from collections.abc import Iterator

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.store.entry import Entry, Key
from gryvia_devcluster.store.log import Change, Cursor, History
from gryvia_devcluster.store.persistence import StateFile
from gryvia_devcluster.types import Json


class Table:
    """One type's objects: by namespace, then name. The sorted view is made on demand and dropped on create and delete."""

    __slots__ = ("_sorted", "count", "namespaces")

    def __init__(self) -> None:
        self.namespaces: dict[str, dict[str, Entry]] = {}
        self.count = 0
        self._sorted: dict[str | None, list[Key]] = {}

    def get(self, key: Key) -> Entry | None:
        names = self.namespaces.get(key.namespace)
        return names.get(key.name) if names else None

    def put(self, entry: Entry) -> None:
        names = self.namespaces.setdefault(entry.key.namespace, {})
        if entry.key.name not in names:
            self.count += 1
            self._forget_order(entry.key.namespace)
        names[entry.key.name] = entry

    def remove(self, key: Key) -> None:
        names = self.namespaces[key.namespace]
        del names[key.name]
        if not names:
            del self.namespaces[key.namespace]
        self.count -= 1
        self._forget_order(key.namespace)

    def entries(self, namespace: str | None) -> list[Entry]:
        """In order of namespace, then name; `namespace` None means all."""
        keys = self._sorted.get(namespace)
        if keys is None:
            chosen = [namespace] if namespace is not None else sorted(self.namespaces)
            keys = [Key(ns, name) for ns in chosen for name in sorted(self.namespaces.get(ns, ()))]
            self._sorted[namespace] = keys
        return [self.namespaces[key.namespace][key.name] for key in keys]

    def _forget_order(self, namespace: str) -> None:
        self._sorted.pop(None, None)
        self._sorted.pop(namespace, None)


class Store:
    """All tables. Not thread-safe: it belongs to one event loop."""

    def __init__(self, *, history: int = 10_000, file: StateFile | None = None) -> None:
        self._tables: dict[str, Table] = {}
        self._file = file
        self.rv = file.first_version if file else 0
        if file:
            for group_resource, entry in file.load():
                self._table(group_resource).put(entry)
        self.history = History(history, horizon=self.rv)

    def _table(self, group_resource: str) -> Table:
        table = self._tables.get(group_resource)
        if table is None:
            table = self._tables[group_resource] = Table()
        return table

    def get(self, group_resource: str, key: Key) -> Entry | None:
        table = self._tables.get(group_resource)
        return table.get(key) if table else None

    def count(self, group_resource: str) -> int:
        table = self._tables.get(group_resource)
        return table.count if table else 0

    def entries(self, group_resource: str, namespace: str | None = None) -> list[Entry]:
        table = self._tables.get(group_resource)
        return table.entries(namespace) if table else []

    def populated(self) -> Iterator[str]:
        """The group resources that hold objects."""
        return (name for name, table in list(self._tables.items()) if table.count)

    def entries_at(self, group_resource: str, namespace: str | None, rv: int) -> list[Entry]:
        """The entries as they were at version `rv`. Raises ApiError Expired when the history does not reach back."""
        if rv > self.rv:
            raise ApiError("Timeout", f"Too large resource version: {rv}, current: {self.rv}")
        self.history.check(rv)
        view: dict[Key, Entry] | None = None
        for change in self.history.log(group_resource).newest_first():
            if change.entry.rv <= rv:
                break
            if namespace is not None and change.entry.key.namespace != namespace:
                continue
            if view is None:
                view = {entry.key: entry for entry in self.entries(group_resource, namespace)}
            if change.previous is None:
                view.pop(change.entry.key, None)
            else:
                view[change.entry.key] = change.previous
        if view is None:
            return self.entries(group_resource, namespace)
        return [view[key] for key in sorted(view)]

    def put(self, group_resource: str, key: Key, obj: Json) -> Entry:
        """Stores `obj` under a new version, which is written into its metadata."""
        self.rv += 1
        obj["metadata"]["resourceVersion"] = str(self.rv)
        entry = Entry(key, self.rv, obj)
        table = self._table(group_resource)
        previous = table.get(key)
        table.put(entry)
        self._record(group_resource, Change("MODIFIED" if previous else "ADDED", entry, previous))
        if self._file:
            self._file.write(group_resource, entry)
        return entry

    def remove(self, group_resource: str, key: Key, last: Json) -> Entry:
        """Removes the object; `last` is its final state, which gets the deletion's version."""
        self.rv += 1
        table = self._table(group_resource)
        previous = table.get(key)
        table.remove(key)
        obj = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.rv)}}
        entry = Entry(key, self.rv, obj)
        self._record(group_resource, Change("DELETED", entry, previous))
        entry.retire()
        if self._file:
            self._file.erase(group_resource, key, self.rv)
        return entry

    def _record(self, group_resource: str, change: Change) -> None:
        if change.previous is not None:
            change.previous.retire()
        self.history.append(group_resource, change)

    def cursor(self, group_resource: str, since: int) -> Cursor:
        """A watch from after `since`. Raises ApiError Expired or, for a version of the future, Timeout."""
        if since > self.rv:
            raise ApiError("Timeout", f"Too large resource version: {since}, current: {self.rv}")
        return self.history.cursor(group_resource, since)
