"""One resource kept in view: list, watch, and list again after a gap, so that a reader never notices a 410."""

from __future__ import annotations

from collections.abc import Callable

from gryvia_devcluster.clock import Clock
from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.types import Api, Json, ResourceType

Key = tuple[str, str]


class Follower:
    """`objects` is the newest known state; `changed(obj, gone)` is called after each change of it."""

    def __init__(self, api: Api, rt: ResourceType, clock: Clock, changed: Callable[[Json, bool], None]) -> None:
        self.objects: dict[Key, Json] = {}
        self._api = api
        self._rt = rt
        self._clock = clock
        self._changed = changed

    async def run(self) -> None:
        while True:
            objects, since = self._api.list(self._rt)
            self._replace(objects)
            try:
                async for event in self._api.watch(self._rt, since):
                    if event.type == "DELETED":
                        self._remove(event.object)
                    elif event.type != "BOOKMARK":
                        self._put(event.object)
            except ApiError as error:
                if error.reason != "Expired":
                    await self._clock.sleep(1.0)

    def _replace(self, objects: list[Json]) -> None:
        uids = {obj["metadata"]["uid"] for obj in objects}
        for old in list(self.objects.values()):
            if old["metadata"]["uid"] not in uids:
                self._remove(old)
        for obj in objects:
            known = self.objects.get(key_of(obj))
            if known is None or known["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                self._put(obj)

    def _put(self, obj: Json) -> None:
        self.objects[key_of(obj)] = obj
        self._changed(obj, False)

    def _remove(self, obj: Json) -> None:
        if self.objects.pop(key_of(obj), None) is not None:
            self._changed(obj, True)


def key_of(obj: Json) -> Key:
    meta = obj["metadata"]
    return meta.get("namespace", ""), meta["name"]
