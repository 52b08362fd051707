"""Who asked what about which Gryvia object, as the API server's own audit log has it: the word of neither the services nor a proxy.

Each replica has an account of its own, so the log tells them apart. A request is about the object that a pass was about when it was
made: the service's own kind itself, a child's owner (as the cluster says it, by annotation or owner reference), and for an Event the
object in its name. Nothing is left out: a request that belongs to no object is an error here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kube.children import owner_of
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, key_of
from gryvia_common.kube.resources import CONFIG_MAPS, JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS, Resource

KINDS: Mapping[str, Resource] = {"jobs": AI_JOB.resource, "tuner": AUTO_TUNER.resource}
CHILDREN: Mapping[str, tuple[Resource, ...]] = {
    "jobs": (JOBS, STATEFUL_SETS, SERVICES, PVCS, PODS),
    "tuner": (AI_JOB.resource, CONFIG_MAPS),
}


@dataclass(frozen=True, slots=True)
class Act:
    """One request. `began` and `ended`: seconds of the API server's clock, when it came in and when it was answered."""

    who: str
    verb: str
    plural: str
    name: str
    subresource: str
    began: float
    ended: float
    code: int

    @property
    def service(self) -> str:
        return self.who.partition("-")[0]


def acts(events: Iterable[Json], prefix: str) -> list[Act]:
    """What the users `<prefix><service>-<letter>` have asked for, in the order in which it came in."""
    found = (_act(event, prefix) for event in events if event["stage"] == "ResponseComplete")
    return sorted((act for act in found if act is not None), key=lambda act: act.began)


def _act(event: Json, prefix: str) -> Act | None:
    user, about = event["user"]["username"], event.get("objectRef")
    who = user.removeprefix(prefix)
    if about is None or who == user or who.startswith("gryvia-"):
        return None
    return Act(
        who=who,
        verb=event["verb"],
        plural=about["resource"],
        name=about.get("name", ""),
        subresource=about.get("subresource", ""),
        began=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        ended=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        code=event["responseStatus"]["code"],
    )


class Owners:
    """Which object of a service's kind an act is about. `look` again whenever there may be new children."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str, str], str] = {}

    async def look(self, kube: Kube) -> None:
        for service, resources in CHILDREN.items():
            for resource in resources:
                for obj in await kube.list(resource):
                    owner = owner_of(obj)
                    if owner is not None and owner.plural == KINDS[service].plural:
                        self._owners[service, resource.plural, key_of(obj).name] = owner.name

    def subject(self, act: Act) -> str:
        """KeyError for what is nobody's."""
        if act.plural == KINDS[act.service].plural:
            return act.name
        if act.plural == "events":
            return act.name.rpartition(".")[0]
        return self._owners[act.service, act.plural, act.name]

    def by_subject(self, found: Iterable[Act]) -> dict[tuple[str, str], list[Act]]:
        """Service and name of an object to what was asked about it, in time."""
        subjects: dict[tuple[str, str], list[Act]] = {}
        for act in found:
            subjects.setdefault((act.service, self.subject(act)), []).append(act)
        return subjects


@dataclass(frozen=True, slots=True)
class HandOver:
    """From the answer to the last request of one replica to the first request of another about the same object."""

    service: str
    subject: str
    old: str
    new: str
    left: float
    taken: float


def hand_overs(subjects: Mapping[tuple[str, str], list[Act]]) -> Iterator[HandOver]:
    """Two passes at once show as one that is taken before it was left."""
    for (service, subject), found in subjects.items():
        left = found[0].ended
        for before, act in pairwise(found):
            if before.who != act.who:
                yield HandOver(service, subject, before.who, act.who, left, act.began)
            left = max(left, act.ended)
