"""The last known state of every object, indexed by owner, that controllers read instead of listing.

Invariant: an entry never goes back in time. Writes made by the shell are put in at once (the API is synchronous, so the
answer is the truth), and watch events with an older resourceVersion than the entry are dropped; that is what keeps a
controller from creating a second pod because its first one's event is still on the way. Listing the API on each pass
was rejected: it is quadratic in a namespace with thousands of pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gryvia_devcluster.types import Json, ResourceType


@dataclass(frozen=True, slots=True)
class Ref:
    """The address of an object: `resource` is a group resource (`jobs.batch`), `namespace` empty if cluster-scoped."""

    resource: str
    namespace: str
    name: str


Listener = Callable[[Ref, Json | None, Json | None], None]
Lookup = Callable[[str, str, str, str], Json | None]

_REMEMBERED_DEATHS = 10_000


class Cache:
    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._dead: dict[str, None] = {}
        self._objects: dict[Ref, Json] = {}
        self._by_space: dict[tuple[str, str], set[Ref]] = {}
        self._by_owner: dict[str, set[Ref]] = {}
        self._by_uid: dict[str, Ref] = {}
        self._listeners: list[Listener] = []
        self._gone: dict[Ref, int] = {}

    def listen(self, listener: Listener) -> None:
        """`listener(ref, old, new)` is called for each change; `new` is None when the object is gone."""
        self._listeners.append(listener)

    def put(self, rt: ResourceType, obj: Json) -> None:
        ref = ref_of(rt, obj)
        old = self._objects.get(ref)
        if _version(obj) <= max(_version(old) if old else -1, self._gone.get(ref, -1)):
            return
        if old is not None:
            self._unindex(ref, old)
        self._objects[ref] = obj
        self._by_space.setdefault((ref.resource, ref.namespace), set()).add(ref)
        self._by_uid[obj["metadata"]["uid"]] = ref
        for owner in owner_uids(obj):
            self._by_owner.setdefault(owner, set()).add(ref)
        self._tell(ref, old, obj)

    def drop(self, rt: ResourceType, obj: Json) -> None:
        """The object is gone. Late news about this uid is ignored from now on."""
        ref = ref_of(rt, obj)
        old = self._objects.get(ref)
        self._gone[ref] = max(self._gone.get(ref, -1), _version(obj))
        if old is None or old["metadata"]["uid"] != obj["metadata"]["uid"]:
            return
        del self._objects[ref]
        self._by_space[ref.resource, ref.namespace].discard(ref)
        self._unindex(ref, old)
        self._dead[obj["metadata"]["uid"]] = None
        if len(self._dead) > _REMEMBERED_DEATHS:
            del self._dead[next(iter(self._dead))]
        self._tell(ref, old, None)

    def confirm_gone(self, rt: ResourceType, obj: Json) -> None:
        """The watch has delivered the deletion: nothing older can follow, so the mark is no longer needed."""
        self.drop(rt, obj)
        self._gone.pop(ref_of(rt, obj), None)

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return self._objects.get(Ref(resource, namespace, name))

    def at(self, ref: Ref) -> Json | None:
        return self._objects.get(ref)

    def by_uid(self, uid: str) -> Json | None:
        ref = self._by_uid.get(uid)
        return self._objects.get(ref) if ref else None

    def ref_by_uid(self, uid: str) -> Ref | None:
        return self._by_uid.get(uid)

    def owner(self, dependent: Json, reference: Json) -> Json | None:
        """The owner that `reference` names, or None if there is none. Asks the API itself before it says None, because
        the owner's event may still be on the way. Raises ApiError where the owner's type is not served."""
        uid = reference["uid"]
        namespace = dependent["metadata"].get("namespace", "")
        found = self.by_uid(uid)
        if found is None and uid not in self._dead:
            found = self._lookup(reference["apiVersion"], reference["kind"], namespace, reference["name"])
        if found is None or found["metadata"]["uid"] != uid:
            return None
        # An owner in another namespace is no owner: Kubernetes resolves references within the dependent's namespace.
        return found if found["metadata"].get("namespace", namespace) == namespace else None

    def listing(self, resource: str, namespace: str) -> list[Json]:
        refs = self._by_space.get((resource, namespace), ())
        return [self._objects[ref] for ref in sorted(refs, key=lambda r: r.name)]

    def in_namespace(self, namespace: str) -> Iterator[tuple[Ref, Json]]:
        for (_, space), refs in list(self._by_space.items()):
            if space == namespace:
                yield from ((ref, self._objects[ref]) for ref in list(refs))

    def refs(self, resource: str) -> list[Ref]:
        return [ref for (res, _), refs in self._by_space.items() if res == resource for ref in refs]

    def dependents(self, uid: str) -> list[tuple[Ref, Json]]:
        """Every object that names `uid` among its owners, controller or not."""
        refs = sorted(self._by_owner.get(uid, ()), key=lambda r: (r.resource, r.name))
        return [(ref, self._objects[ref]) for ref in refs]

    def controlled(self, owner: Json, resource: str) -> list[Json]:
        """The objects of a resource whose controller is `owner`."""
        uid = owner["metadata"]["uid"]
        return [obj for ref, obj in self.dependents(uid) if ref.resource == resource and controller_uid(obj) == uid]

    def _unindex(self, ref: Ref, obj: Json) -> None:
        self._by_uid.pop(obj["metadata"]["uid"], None)
        for owner in owner_uids(obj):
            refs = self._by_owner.get(owner)
            if refs is not None:
                refs.discard(ref)
                if not refs:
                    del self._by_owner[owner]

    def _tell(self, ref: Ref, old: Json | None, new: Json | None) -> None:
        for listener in self._listeners:
            listener(ref, old, new)


def ref_of(rt: ResourceType, obj: Json) -> Ref:
    meta = obj["metadata"]
    return Ref(rt.group_resource, meta.get("namespace", ""), meta["name"])


def owner_uids(obj: Json) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())]


def controller_uid(obj: Json) -> str | None:
    owner = controller_ref(obj)
    return owner["uid"] if owner else None


def controller_ref(obj: Json) -> Json | None:
    owners: list[Json] = obj["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def _version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])
