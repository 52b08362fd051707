"""The event recorder: core/v1 Events about objects, equal ones merged into one with a count."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

from gryvia_devcluster.clock import parse
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Api, Json

_WINDOW = timedelta(minutes=10)
_KEPT = 1000
_Sameness = tuple[str, str, str, str, str]


class EventLog:
    """Remembers the last events' names (not the events), so that a repetition is an update."""

    def __init__(self, api: Api, now: Callable[[], str]) -> None:
        self._api = api
        self._now = now
        self._names: dict[_Sameness, str] = {}

    def record(self, obj: Json, *, type: str, reason: str, message: str, component: str) -> None:
        meta = obj["metadata"]
        namespace = meta.get("namespace") or "default"
        sameness = (meta.get("uid", ""), type, reason, message, component)
        try:
            if not self._repeat(sameness, namespace):
                self._create(obj, namespace, sameness)
        except ApiError as error:
            # An event is a courtesy: a terminating or vanished namespace refuses it, and nothing may depend on that.
            if error.reason not in ("NotFound", "Forbidden", "Conflict"):
                raise

    def _repeat(self, sameness: _Sameness, namespace: str) -> bool:
        name = self._names.get(sameness)
        if name is None:
            return False
        rt = self._api.resource("", "events")
        try:
            event = self._api.get(rt, namespace, name)
        except ApiError:
            del self._names[sameness]
            return False
        now = self._now()
        if parse(now) - parse(event["lastTimestamp"]) > _WINDOW:
            return False
        again = {**event, "count": event.get("count", 1) + 1, "lastTimestamp": now}
        self._api.update(rt, namespace, name, again, manager=sameness[4])
        return True

    def _create(self, obj: Json, namespace: str, sameness: _Sameness) -> None:
        uid, kind, reason, message, component = sameness
        meta, now = obj["metadata"], self._now()
        name = f"{meta['name'][:230]}.{uuid.uuid4().hex[:16]}"
        event = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "kind": obj["kind"],
                "namespace": meta.get("namespace", ""),
                "name": meta["name"],
                "uid": uid,
                "apiVersion": obj["apiVersion"],
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "reason": reason,
            "message": message[:1024],
            "source": {"component": component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "reportingComponent": component,
            "reportingInstance": "",
        }
        self._api.create(self._api.resource("", "events"), namespace, event, manager=component)
        self._names[sameness] = name
        while len(self._names) > _KEPT:
            del self._names[next(iter(self._names))]
