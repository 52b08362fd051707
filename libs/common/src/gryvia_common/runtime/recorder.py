"""Kubernetes Events about objects, for who runs `kubectl describe`.

Equal ones (object, type, reason, message) within ten minutes become one Event whose count rises, so that a flapping object does
not flood etcd; and what a person reads stays short. An Event is a courtesy: failing to write one never fails a pass.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from gryvia_common.clock import Clock
from gryvia_common.errors import Conflict, Gone, GryviaError, Transient
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, key_of, uid_of
from gryvia_common.kube.resources import EVENTS, Resource
from gryvia_common.runtime.plan import Record

WINDOW = timedelta(minutes=10)
REMEMBERED = 4096
MESSAGE_LIMIT = 1024


@dataclass(slots=True)
class _Series:
    name: str
    first: datetime
    last: datetime
    count: int


class Recorder:
    """Writes core/v1 Events as `component`."""

    def __init__(self, kube: Kube, component: str, clock: Clock) -> None:
        self._kube = kube
        self._component = component
        self._clock = clock
        self._series: OrderedDict[tuple[str, Record], _Series] = OrderedDict()
        self._log = structlog.get_logger(component)

    async def record(self, resource: Resource, obj: Json, record: Record) -> None:
        """Create the Event, or raise the count of the one that says the same."""
        now = self._clock.now()
        identity = (uid_of(obj), record)
        series = self._series.get(identity)
        try:
            if series is not None and now - series.last < WINDOW:
                await self._again(obj, series, now)
            else:
                await self._first(resource, obj, record, now)
        except Transient as error:
            self._log.debug("event not recorded", reason=record.reason, name=str(key_of(obj)), error=str(error))
        except GryviaError as error:
            self._log.warning("event not recorded", reason=record.reason, name=str(key_of(obj)), error=str(error))

    async def _again(self, obj: Json, series: _Series, now: datetime) -> None:
        body = {"count": series.count + 1, "lastTimestamp": timestamp(now)}
        namespace = key_of(obj).namespace or "default"
        try:
            await self._kube.patch(EVENTS, namespace, series.name, body, manager=self._component)
        except Gone:
            # The API server lets Events expire; the next one starts a new series.
            series.last = now - WINDOW
            return
        series.count += 1
        series.last = now

    async def _first(self, resource: Resource, obj: Json, record: Record, now: datetime) -> None:
        key, uid = key_of(obj), uid_of(obj)
        digest = hashlib.sha256(f"{uid}/{record}/{now.isoformat()}".encode()).hexdigest()[:16]
        name = f"{key.name[:200]}.{digest}"
        manifest: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": key.namespace or "default"},
            "involvedObject": {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "name": key.name,
                "uid": uid,
                **({"namespace": key.namespace} if key.namespace else {}),
            },
            "type": record.type,
            "reason": record.reason,
            "message": record.message[:MESSAGE_LIMIT],
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        try:
            await self._kube.create(EVENTS, manifest)
        except Conflict:
            return
        self._series[uid, record] = _Series(name, now, now, 1)
        self._series.move_to_end((uid, record))
        while len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
