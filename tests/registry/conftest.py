"""A family's cluster in a dictionary, and replicas of the registry that see it late and die in the middle of a pass.

A replica carries plans out in the runtime's order, with the API server's rules (uid, resourceVersion, finalizers). What others
write reaches it type by type, each type in order, when a test says so.
"""

from __future__ import annotations

import copy
import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gryvia_common.bus.events import DomainEvent
from gryvia_common.errors import Conflict, Gone
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.families import Family, read_family, record_name
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json, is_deleting
from gryvia_common.kube.resources import CONFIG_MAPS, Resource
from gryvia_common.runtime.controller import Ref, Selection
from gryvia_common.runtime.differences import covers, merge_difference
from gryvia_common.runtime.parsing import parse_object, status_keys
from gryvia_common.runtime.plan import Patch, Plan, Record
from gryvia_common.runtime.world import FixedWorld, Observation, Refusal
from gryvia_devcluster.patch.rfc import merge_patch
from gryvia_registry.controller import controller
from gryvia_registry.settings import RegistrySettings

ENTRIES, SERVICES, RECORDS = MODEL_REGISTRY.plural, INFERENCE_SERVICE.plural, CONFIG_MAPS.plural
Id = tuple[str, str]
NS = "ns"
KEYS = status_keys(MODEL_REGISTRY)


class Died(Exception):
    """The replica was killed in the middle of a pass."""


@dataclass
class Cluster:
    """The API server. `refuse`: its word about a write, empty when it takes it. `families`: every record there ever was."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    objects: dict[Id, Json] = field(default_factory=dict)
    replicas: list[Replica] = field(default_factory=list)
    writes: Counter[str] = field(default_factory=Counter)
    families: list[Family] = field(default_factory=list)
    refuse: Callable[[str, Json], str] = lambda name, body: ""
    events: list[DomainEvent] = field(default_factory=list)
    records: list[tuple[str, Record]] = field(default_factory=list)
    version: int = 100

    def replica(self) -> Replica:
        made = Replica(self)
        made.cache = copy.deepcopy(self.objects)
        self.replicas.append(made)
        return made

    def put(self, id: Id, obj: Json | None) -> Json | None:
        """Store, or remove with None; every replica will hear of it."""
        self.version += 1
        if obj is None:
            obj = self.objects.pop(id)
            change: tuple[Id, Json | None] = (id, None)
        else:
            obj = copy.deepcopy(obj)
            obj["metadata"]["resourceVersion"] = str(self.version)
            self.objects[id] = obj
            change = (id, copy.deepcopy(obj))
            if id[0] == RECORDS:
                self.families.append(read_family(json.loads(obj["data"]["family.json"])["name"], obj))
        for replica in self.replicas:
            replica.coming.setdefault(id[0], deque()).append(change)
        return copy.deepcopy(obj)

    def create(self, plural: str, obj: Json) -> Json:
        made = copy.deepcopy(obj)
        id = (plural, made["metadata"]["name"])
        if id in self.objects:
            raise Conflict(f"{id} exists")
        made["metadata"] |= {
            "namespace": NS,
            "uid": f"{id[1]}-{self.version}",
            "generation": 1,
            "creationTimestamp": timestamp(self.now),
        }
        stored = self.put(id, made)
        assert stored is not None
        return stored

    def change(self, id: Id, body: Json, *, status: bool = False) -> Json:
        before = self.objects.get(id)
        if before is None:
            raise Gone(f"{id}")
        meta = dict(body.get("metadata") or {})
        for key in ("uid", "resourceVersion"):
            if key in meta and meta.pop(key) != before["metadata"][key]:
                raise Conflict(f"{id}: {key}")
        part = (
            {"status": body.get("status")}
            if status
            else {**{k: v for k, v in body.items() if k != "status"}, "metadata": meta}
        )
        after = merge_patch(before, part)
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] += 1
        if after == before:
            return copy.deepcopy(before)
        if is_deleting(after) and not after["metadata"].get("finalizers"):
            self.put(id, None)
            return after
        stored = self.put(id, after)
        assert stored is not None
        return stored

    def delete(self, plural: str, name: str) -> None:
        id = (plural, name)
        obj = self.objects.get(id)
        if obj is None or is_deleting(obj):
            return
        if obj["metadata"].get("finalizers"):
            self.put(id, {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": timestamp(self.now)}})
        else:
            self.put(id, None)

    def entry(self, name: str, version: str | None = None, stage: str | None = None, **spec: Any) -> Json:
        """A new entry of the family `m`."""
        body = {
            "modelName": "m",
            "version": name if version is None else version,
            "artifacts": {"s3Path": f"s3://m/{name}"},
            **spec,
        }
        return self.create(
            ENTRIES, {"metadata": {"name": name}, "spec": {**body, **({"stage": stage} if stage else {})}}
        )

    def edit(self, name: str, **spec: Any) -> None:
        if (ENTRIES, name) in self.objects:
            self.change((ENTRIES, name), {"spec": spec})

    def annotate(self, name: str, **annotations: str | None) -> None:
        if (ENTRIES, name) in self.objects:
            named = {f"gryvia.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
            self.change((ENTRIES, name), {"metadata": {"annotations": named}})

    def service(self, name: str, model: str, status: Json | None = None, **spec: Any) -> None:
        id = (SERVICES, name)
        if id not in self.objects:
            self.create(SERVICES, {"metadata": {"name": name}, "spec": {"modelRef": model, "backend": "vllm", **spec}})
        self.change(id, {"spec": {"modelRef": model, **spec}})
        self.change(id, {"status": status or {}}, status=True)

    def after(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def settle(self) -> None:
        """Everything is delivered and every entry gets passes until no replica changes anything."""
        for _ in range(60):
            changed = False
            for replica in self.replicas:
                replica.deliver()
                for name in sorted(name for plural, name in replica.cache if plural == ENTRIES):
                    changed |= replica.step(name)
            if not changed and not any(any(queue) for replica in self.replicas for queue in replica.coming.values()):
                return
        raise AssertionError("the family does not settle")

    @property
    def family(self) -> Family:
        return read_family("m", self.objects[RECORDS, record_name("m")])

    @property
    def production(self) -> str:
        holder = self.family.production
        return holder.entry if holder else ""

    def get(self, name: str) -> Json:
        return self.objects[ENTRIES, name]

    def stage(self, name: str) -> str:
        return str(self.get(name)["spec"].get("stage", "dev"))

    def status(self, name: str) -> Json:
        found: Json = self.get(name).get("status") or {}
        return found

    def condition(self, name: str, type: str) -> tuple[str, str, str]:
        found = next((one for one in self.status(name).get("conditions", ()) if one["type"] == type), None)
        return (found["status"], found["reason"], found["message"]) if found else ("", "", "")

    def happened(self, verb: str) -> list[str]:
        """Names in the events of this type, repeats of one id dropped, as a consumer does."""
        found = {event.id: event.name for event in self.events if event.type == f"gryvia.model.{verb}"}
        return list(found.values())


@dataclass
class Replica:
    """One process of the service. `die_before`: the effect at which the next pass dies, by its number in the pass."""

    cluster: Cluster
    cache: dict[Id, Json] = field(default_factory=dict)
    coming: dict[str, deque[tuple[Id, Json | None]]] = field(default_factory=dict)
    refusals: dict[tuple[Resource, str], tuple[Refusal, Json]] = field(default_factory=dict)
    observations: dict[str, dict[str, Observation]] = field(default_factory=dict)
    die_before: int = -1
    effects: int = 0

    def __post_init__(self) -> None:
        self.controller = controller(RegistrySettings())

    def deliver(self, plural: str = "", count: int = 10**6) -> None:
        for name, queue in self.coming.items():
            for _ in range(min(count, len(queue)) if plural in ("", name) else 0):
                id, obj = queue.popleft()
                self._take_in(id, obj)

    def plan(self, name: str) -> tuple[Json, Plan] | None:
        raw = self.cache.get((ENTRIES, name))
        if raw is None:
            return None
        entry = parse_object(MODEL_REGISTRY, raw)

        def get(resource: Resource, namespace: str, name: str) -> Json | None:
            return self.cache.get((resource.plural, name))

        refs = list(self.controller.refs(entry, get))
        others = {
            (ref.resource, NS, ref.name): found
            for ref in refs
            if isinstance(ref, Ref) and (found := get(ref.resource, NS, ref.name)) is not None
        }
        known = [(plural, obj) for (plural, _), obj in sorted(self.cache.items())]
        indexes = {index.name: index for index in self.controller.indexes}
        selected = {
            (ref.index, ref.key): [
                obj
                for plural, obj in known
                if plural == indexes[ref.index].resource.plural and ref.key in indexes[ref.index].keys(obj)
            ]
            for ref in refs
            if isinstance(ref, Selection)
        }
        refusals = {id: refusal for id, (refusal, _) in self.refusals.items()}
        world = FixedWorld({}, others, selected, self.observations.get(name, {}), refusals)
        return raw, self.controller.decide(entry, world, self.cluster.now)

    def step(self, name: str) -> bool:
        """One pass; whether it changed anything."""
        found = self.plan(name)
        if found is None:
            return False
        raw, plan = found
        self.effects = 0
        try:
            return self._carry_out(raw, plan)
        except Conflict:
            live = self.cluster.objects.get((ENTRIES, name))
            self._take_in((ENTRIES, name), copy.deepcopy(live))
            return True
        except Gone:
            self.cache.pop((ENTRIES, name), None)
            return True

    def _carry_out(self, raw: Json, plan: Plan) -> bool:
        name = raw["metadata"]["name"]
        for event in plan.emit:
            self._reach()
            self.cluster.events.append(event)
        changed = False
        for apply in () if is_deleting(raw) else plan.apply:
            id = (apply.resource.plural, apply.manifest["metadata"]["name"])
            if id not in self.cache:
                assert not apply.owned
                self._reach()
                try:
                    self.cache[id] = self.cluster.create(id[0], apply.manifest)
                    self.cluster.writes["create"] += 1
                except Conflict:
                    self.cache[id] = copy.deepcopy(self.cluster.objects[id])
                changed = True
        for patch in plan.patch:
            outcome = self._patch(patch)
            changed |= outcome == "changed"
            if outcome == "stopped" or (outcome == "changed" and patch.uid == raw["metadata"]["uid"]):
                return True
        for record in plan.record:
            self.cluster.records.append((name, record))
        if plan.metadata is not None:
            self._reach()
            body = {"metadata": {**plan.metadata, "resourceVersion": raw["metadata"]["resourceVersion"]}}
            raw = self.cluster.change((ENTRIES, name), body)
            self.cluster.writes["metadata"] += 1
            self._take_in((ENTRIES, name), raw if (ENTRIES, name) in self.cluster.objects else None)
            changed = True
        changed |= self._look(name, plan)
        if plan.status is None or (ENTRIES, name) not in self.cache:
            return changed
        difference = merge_difference(raw.get("status") or {}, plan.status.wire(), removable=KEYS)
        if difference:
            self._reach()
            meta = raw["metadata"]
            body = {"metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}, "status": difference}
            self._take_in((ENTRIES, name), self.cluster.change((ENTRIES, name), body, status=True))
            self.cluster.writes["status"] += 1
            changed = True
        return changed

    def _patch(self, patch: Patch) -> str:
        id = (patch.resource.plural, patch.name)
        live = self.cache.get(id)
        if live is not None and live["metadata"]["uid"] == patch.uid and covers(live, patch.body):
            return "same"
        known = self.refusals.get((patch.resource, patch.name))
        if known is not None and known[1] == patch.body:
            return "same"
        self._reach()
        problem = self.cluster.refuse(patch.name, patch.body)
        if problem:
            refusal = Refusal(patch.resource, patch.name, "Invalid", problem)
            self.refusals[patch.resource, patch.name] = (refusal, patch.body)
            return "stopped"
        version = {"resourceVersion": patch.version} if patch.version else {}
        body = {**patch.body, "metadata": {**patch.body.get("metadata", {}), "uid": patch.uid, **version}}
        try:
            self._take_in(id, self.cluster.change(id, body))
        except (Conflict, Gone):
            self._take_in(id, copy.deepcopy(self.cluster.objects.get(id)))
            self.cluster.writes["conflict"] += 1
            return "stopped"
        self.cluster.writes[f"patch {id[0]}"] += 1
        return "changed"

    def _look(self, name: str, plan: Plan) -> bool:
        """The action: what the API server says now; a new answer starts another pass."""
        before = self.observations.get(name, {})
        found = {}
        for action in plan.actions:
            record = bool(action.arguments.get("record"))
            live = self.cluster.objects.get((RECORDS if record else ENTRIES, str(action.arguments["name"])))
            said: object = live["metadata"]["uid"] if live else ""
            if record:
                said = int(live["metadata"]["resourceVersion"]) if live else 0
            found[action.key] = Observation(self.cluster.now, said)
        self.observations[name] = found
        return {key: one.value for key, one in before.items()} != {key: one.value for key, one in found.items()}

    def _take_in(self, id: Id, obj: Json | None) -> None:
        """As the cache does: never back to an older version of the same object."""
        known = self.cache.get(id)
        if obj is None:
            self.cache.pop(id, None)
        elif known is None or int(known["metadata"]["resourceVersion"]) < int(obj["metadata"]["resourceVersion"]):
            self.cache[id] = obj

    def _reach(self) -> None:
        self.effects += 1
        if self.effects - 1 == self.die_before:
            self.die_before = -1
            self.refusals.clear()
            self.observations.clear()
            self.controller = controller(RegistrySettings())
            raise Died


@pytest.fixture
def cluster() -> Cluster:
    """With one replica."""
    made = Cluster()
    made.replica()
    return made


@pytest.fixture
def new_cluster() -> Callable[[], Cluster]:
    """Without any."""
    return Cluster
