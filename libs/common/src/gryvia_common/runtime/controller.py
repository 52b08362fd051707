"""What a service hands to the runtime: one Controller a kind.

A controller names everything it touches (children it owns, objects it only reads, actions it needs), because the bus
subscriptions and the least-privilege RBAC rules are generated from exactly that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from gryvia_common.clock import Clock
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import Resource
from gryvia_common.runtime.plan import Plan
from gryvia_common.runtime.world import Object, World

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)


@dataclass(frozen=True, slots=True)
class Ref:
    """An object that is read but not owned; a change of it starts a pass of who refers to it."""

    resource: Resource
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    """Objects of a type, found by what they say instead of by name: `keys` of an object's JSON, `<namespace>/<value>` by
    convention, so that nobody finds what lives elsewhere. The name is one of the service's."""

    name: str
    resource: Resource
    keys: Callable[[Json], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything in an index that has this key; when an object gets or loses the key, or changes while it has it, whoever
    selects it gets a pass."""

    index: str
    key: str


Lookup = Callable[[Resource, str, str], Json | None]
"""Resource, namespace, name: an object of one of the types in `ref_resources`, so that a ref may follow from another."""


class ActionContext(Protocol):
    """What an action runner may use. `previous` is the value its last run returned for the same key, None at first."""

    @property
    def kube(self) -> Kube: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def raw(self) -> Json: ...

    @property
    def previous(self) -> object: ...


Runner = Callable[[ActionContext, Mapping[str, object]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Controller(Generic[S, T]):
    """`decide` is pure. `invalid` answers for an object whose spec does not parse: what to change is in the message.
    `children`: types it owns (directly or below its children). `refs`: objects it reads, of the types in `ref_resources`,
    by name or by an index. `offload`: decide burns CPU and
    runs in a thread, so that the loop stays free. `subresources`: what its actions read, for RBAC (`pods/log`)."""

    kind: Kind[S, T]
    decide: Callable[[Object[S, T], World, datetime], Plan]
    invalid: Callable[[Json, str, datetime], Plan]
    children: tuple[Resource, ...] = ()
    ref_resources: tuple[Resource, ...] = ()
    refs: Callable[[Object[S, T], Lookup], Iterable[Ref | Selection]] = lambda obj, get: ()
    indexes: tuple[Index, ...] = ()
    actions: Mapping[str, Runner] = field(default_factory=dict)
    subresources: tuple[str, ...] = ()
    offload: bool = False
