"""What a decide function may know besides its object: a read-only view of the bus cache, and what earlier passes learnt.

Invariant: `world` is complete for the children of the object (the runtime starts no pass before the snapshot is) and includes
the service's own last writes. Nothing in it may be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar, overload

from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kube.objects import Json, key_of
from gryvia_common.kube.resources import Resource

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)


@dataclass(frozen=True, slots=True)
class Object(Generic[S, T]):
    """The object a pass is about: `raw` as on the bus, `spec` and `status` parsed (an unreadable status is an empty one)."""

    raw: Json
    namespace: str
    name: str
    uid: str
    generation: int
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_at: datetime
    spec: S
    status: T


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer of an action: `value` is what the runner returned, or `error` the message it failed with; `at` when."""

    at: datetime
    value: object = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A child the API server would not take, or that belongs to somebody else (`reason` NameCollision). Remembered until the
    object's generation or the manifest changes, so that it is not asked again and again; decide says so in the status. `sent`:
    what it would not take, the manifest or the body of a patch."""

    resource: Resource
    name: str
    reason: str
    message: str
    sent: Json = field(default_factory=dict)

    @property
    def may_pass(self) -> bool:
        """Nothing is wrong with what was asked for: a quota may be freed, a role granted."""
        return self.reason in ("Forbidden", "ExceededQuota")


class Children(Sequence[Json]):
    """Objects whose names are known and whose bodies are decoded when asked for, once: of 20,000 jobs a pass wants a few.
    `load` gives the body at an index."""

    def __init__(self, names: Sequence[str], load: Callable[[int], Json]) -> None:
        self._load = load
        self._loaded: dict[int, Json] = {}
        self._size = len(names)
        self._index: dict[str, int] = {}
        for index, name in enumerate(names):
            self._index.setdefault(name, index)

    @classmethod
    def of(cls, objects: Iterable[Json]) -> Children:
        given = tuple(objects)
        return cls([key_of(one).name for one in given], given.__getitem__)

    @property
    def names(self) -> Iterable[str]:
        return self._index.keys()

    def named(self, name: str) -> Json | None:
        """The object of this name; where several namespaces have one, the first."""
        index = self._index.get(name)
        return None if index is None else self[index]

    @overload
    def __getitem__(self, index: int) -> Json: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Json]: ...

    def __getitem__(self, index: int | slice) -> Json | Sequence[Json]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._size))]
        if index < 0:
            index += self._size
        if not 0 <= index < self._size:
            raise IndexError(index)
        if index not in self._loaded:
            self._loaded[index] = self._load(index)
        return self._loaded[index]

    def __len__(self) -> int:
        return self._size


class World(Protocol):
    """See the module's docstring."""

    def children(self, resource: Resource) -> Children:
        """Everything of this type that belongs to the object, by owner annotation or owner reference (uid), at any depth, by name."""
        ...

    def child(self, resource: Resource, name: str) -> Json | None:
        """One of the children, without a look at the others."""
        ...

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Any object of a type that the controller declared in `refs`."""
        ...

    def select(self, index: str, key: str) -> Children:
        """What has this key in an index, by name; empty unless the controller's `refs` named the Selection."""
        ...

    def observation(self, key: str) -> Observation | None: ...

    def refusal(self, resource: Resource, name: str) -> Refusal | None: ...


@dataclass(frozen=True, slots=True)
class FixedWorld:
    """A World from plain values: what the runtime takes from the cache for one pass, and what a test states."""

    owned: Mapping[Resource, Sequence[Json]] = field(default_factory=dict)
    others: Mapping[tuple[Resource, str, str], Json] = field(default_factory=dict)
    selected: Mapping[tuple[str, str], Sequence[Json]] = field(default_factory=dict)
    observations: Mapping[str, Observation] = field(default_factory=dict)
    refusals: Mapping[tuple[Resource, str], Refusal] = field(default_factory=dict)

    def children(self, resource: Resource) -> Children:
        return _children(self.owned.get(resource, ()))

    def child(self, resource: Resource, name: str) -> Json | None:
        return self.children(resource).named(name)

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        return self.others.get((resource, namespace, name))

    def select(self, index: str, key: str) -> Children:
        return _children(self.selected.get((index, key), ()))

    def observation(self, key: str) -> Observation | None:
        return self.observations.get(key)

    def refusal(self, resource: Resource, name: str) -> Refusal | None:
        return self.refusals.get((resource, name))


def _children(found: Sequence[Json]) -> Children:
    return found if isinstance(found, Children) else Children.of(found)
