"""What a decide function answers: data that says what should be so, never how to get there.

The runtime carries a plan out in a fixed order: events, children (deletes, then applies), patches, Kubernetes Events, the object's
own metadata, its status. It stops at the first that turns out to rest on an old view, and the next pass decides anew. An event
goes out before the status that records its transition, so it is sent at least once and its deterministic id makes that exactly
once for who reads it. What is already so costs no request, so a plan may (and should) name everything it wants every time. A
pass that changed something is followed by another at once; a settled object's plan changes nothing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from gryvia_common.bus.events import DomainEvent
from gryvia_common.kinds.model import Status
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Apply:
    """One child as it should be (server-side apply). `create_only`: written once and never again (frozen templates): if it is
    there, whatever it looks like by now, nothing is sent. `owned` False: an object that belongs to nobody and outlives who made
    it; made when there is none of the name, never written again from here (see Patch). Whose the one is that is there already
    the next pass sees by a ref of the controller."""

    resource: Resource
    manifest: Json
    create_only: bool = False
    owned: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """A JSON merge patch (RFC 7386) of an object that is no child: another one (an entry that a workflow changes, a record that
    several objects share), or the spec of the object itself. `uid`: only the object that was seen. `version`: only as it was
    seen (compare-and-set); empty: whatever it has become. Patches go out in order, and none after one that failed. A patch
    that changes nothing costs no request; one that the API server refuses becomes a Refusal, as of a child."""

    resource: Resource
    namespace: str
    name: str
    body: Json
    uid: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """One child that should not be. `uid` is a precondition: the object that was seen, no other. Gone already is fine."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"


@dataclass(frozen=True, slots=True)
class Record:
    """A core/v1 Event on the object, for `kubectl describe`. Equal ones within ten minutes only raise the count."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that needs I/O (a log read, a probe, a call). `name` picks the service's runner, `key` identifies it within the
    object: one with the same key runs once at a time, its answer stands in the world of later passes as an Observation.
    It is started when there is no observation under `key` yet, or the one there is older than `every` seconds."""

    name: str
    key: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    every: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """`status` None leaves the status as it is; otherwise it is the whole status. `metadata` is a merge patch of the object's
    own metadata (annotations to remove, finalizers). `again_at`: when to look again though nothing changed."""

    status: Status | None = None
    apply: tuple[Apply, ...] = ()
    delete: tuple[Delete, ...] = ()
    patch: tuple[Patch, ...] = ()
    emit: tuple[DomainEvent, ...] = ()
    record: tuple[Record, ...] = ()
    actions: tuple[Action, ...] = ()
    metadata: Json | None = None
    again_at: datetime | None = None
