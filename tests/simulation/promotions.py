"""Random lives of a model family under several replicas of the registry, and what has to be true of its record all the time.

What people do and what goes wrong is drawn from a seed. There is no undisturbed run to compare with, for who is promoted when
two ask at once is a matter of luck. That somebody is, exactly one at a time, and that everything follows the record in the end,
is not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from doubles import EFFECT_FAULTS, EffectFault, Effects
from memory_cluster import Change, MemoryCluster
from node import Course
from scenarios import SERVICES, Move
from simulated import FEED_FAULTS, FeedFault, Simulation, manifest
from virtual_time import run

from gryvia_common.bus.events import DomainEvent, ModelArchived, ModelPromoted, ModelRolledBack
from gryvia_common.errors import Gone
from gryvia_common.kinds.conditions import find_condition
from gryvia_common.kinds.families import RECORD_KEY, Family, Term, parse_family
from gryvia_common.kinds.model import Condition
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.objects import Json, uid_of
from gryvia_common.kube.resources import CONFIG_MAPS

FAMILY = "digits"
ENTRIES = 4
CALM = 150.0
"""Seconds in which whatever went wrong is over: the longest fault takes 30 s, a lost delivery as long again."""
RESOURCE, NAMESPACE = MODEL_REGISTRY.resource, "team-a"


@dataclass(frozen=True, slots=True)
class Step:
    """What somebody does to an entry; `wait`: seconds until the next does something."""

    what: str
    entry: str
    value: Any
    wait: float

    def act(self, cluster: MemoryCluster) -> None:
        try:
            self._act(cluster)
        except Gone:
            return  # nobody can edit what is not there

    def _act(self, cluster: MemoryCluster) -> None:
        if self.what == "create":
            if (RESOURCE.plural, NAMESPACE, self.entry) not in cluster.objects:
                cluster.create(RESOURCE, manifest(MODEL_REGISTRY, self.entry, self.value))
        elif self.what == "delete":
            cluster.delete(RESOURCE, NAMESPACE, self.entry)
        elif self.what == "annotate":
            cluster.change(RESOURCE, NAMESPACE, self.entry, {"metadata": {"annotations": self.value}})
        else:
            cluster.change(RESOURCE, NAMESPACE, self.entry, {"spec": self.value})


@dataclass(frozen=True, slots=True)
class Life:
    """`effects` and `feeds`: what goes wrong at which effect, and at which delivery to which replica."""

    steps: tuple[Step, ...]
    effects: tuple[tuple[int, EffectFault], ...]
    feeds: tuple[tuple[str, int, FeedFault], ...]
    replicas: int

    def smaller(self) -> Iterator[Life]:
        """The same without one thing."""
        for name in ("steps", "effects", "feeds"):
            items = getattr(self, name)
            for at in range(len(items)):
                yield replace(self, **{name: items[:at] + items[at + 1 :]})


def random_life(seed: str) -> Life:
    chance = random.Random(seed)
    replicas = chance.choice([1, 2, 2, 3])
    steps = tuple(_random_step(chance) for _ in range(chance.randint(3, 12)))
    effects = tuple((chance.randrange(60), chance.choice(EFFECT_FAULTS)) for _ in range(chance.randint(0, 4)))
    names = ["registry", *(f"registry-{number}" for number in range(1, replicas))]
    feeds = tuple(
        (chance.choice(names), chance.randrange(60), chance.choice(FEED_FAULTS)) for _ in range(chance.randint(0, 3))
    )
    return Life(steps, effects, feeds, replicas)


def _random_step(chance: random.Random) -> Step:
    entry = f"v{chance.randrange(ENTRIES)}"
    wait = chance.choice([0.0, 0.002, 0.01, 0.5, 5.0, CALM])
    what = chance.choice(["create"] * 4 + ["stage"] * 4 + ["score", "aliases", "annotate", "delete"])
    stage = chance.choice(["dev", "staging", "staging", "production", "production", "archived"])
    score = {"metadata": {"accuracy": f"0.{chance.randrange(10)}"}}
    aliases = {"aliases": chance.choice([["champion"], ["champion", "latest"], ["latest"], []])}
    value: Json = {
        "create": {
            "modelName": FAMILY,
            "version": entry,
            "artifacts": {"pvcName": "models"},
            "stage": stage,
            "promotionPolicy": {"metric": "accuracy"},
            "autoServe": chance.random() < 0.3,
            **score,
            **(aliases if chance.random() < 0.3 else {}),
        },
        "stage": {"stage": stage},
        "score": score,
        "aliases": aliases,
        "annotate": {"gryvia.io/rollback-requested": "a test"},
        "delete": {},
    }[what]
    return Step(what, entry, value, wait)


@dataclass
class RecordWatch:
    """Sees every version of the record, as the API server has it."""

    records: list[Family] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def seen(self, change: Change) -> None:
        if change.plural != CONFIG_MAPS.plural:
            return
        if change.op == "deleted":
            self.wrong.append("the record was deleted")
            return
        try:
            family = parse_family(FAMILY, json.loads(change.body)["data"][RECORD_KEY])
        except ValueError as error:
            self.wrong.append(f"a record that is none: {error}")
            return
        if self.records:
            self.wrong += follows(self.records[-1], family)
        self.records.append(family)


def follows(before: Family, after: Family) -> Iterator[str]:
    """What is wrong with this step of the record: history is only added to, and without gaps."""
    if after.change <= before.change:
        yield f"change {after.change} after {before.change}"
    added = len(after.terms) - len(before.terms)
    if added not in (0, 1):
        yield f"{added} terms more at once"
        return
    for old, new in zip(before.terms, after.terms[added:], strict=True):
        ending = old is before.terms[0] and old.end is None
        if not _same(old, new, ending=ending):
            yield f"a term was rewritten: {old} became {new}"
    if added and before.current is not None:
        old, new = after.terms[1], after.terms[0]
        if old.end != new.start or old.successor != ("" if old.reason == "Deleted" else new.entry):
            yield f"{new.entry} follows {old.entry} with a gap: {old.end} to {new.start}"


def _same(old: Term, new: Term, *, ending: bool) -> bool:
    free = {"generation", *(("end", "reason", "successor") if ending else ())}
    return old.model_dump(exclude=free) == new.model_dump(exclude=free) and old.generation <= new.generation


def live(life: Life) -> list[str]:
    """What was wrong; empty when all was well."""
    return run(_live(life))


async def _live(life: Life) -> list[str]:
    effects = Effects(dict(life.effects))
    sim = Simulation(lambda *_: Course(), {"registry": SERVICES["registry"]}, effects, replicas=life.replicas)
    watch = RecordWatch()
    sim.cluster.watchers.insert(0, watch.seen)
    for process, at, fault in life.feeds:
        if process in sim.processes:
            sim.processes[process].faults[at] = fault
    moves: list[Move] = []
    asked: list[str] = []
    at, calm = 1.0, True
    for step in life.steps:
        moves.append((at, step.act))
        calm, before = step.wait == CALM, calm
        if calm and before:
            moves.append((at + CALM - 1.0, lambda cluster, step=step: asked.extend(unheard(step, cluster, watch))))
        at += step.wait + 1e-6  # timers of one instant go off in no order
    until = at + 2 * CALM
    await sim.live(moves, until)
    late = [what for when, _, what in effects.log if when > until]
    return [*watch.wrong, *asked, *unsettled(sim, watch), *(f"not quiet: {what}" for what in late)]


def unheard(step: Step, cluster: MemoryCluster, watch: RecordWatch) -> Iterator[str]:
    """Somebody set a stage, and nobody did anything for a long time before and since: it must have come to pass."""
    found = cluster.objects.get((RESOURCE.plural, NAMESPACE, step.entry))
    if found is None or step.what not in ("create", "stage"):
        return
    asked, stands = step.value["stage"], found["spec"]["stage"]
    record = watch.records[-1] if watch.records else None
    holds = record is not None and record.production is not None and record.production.uid == uid_of(found)
    if step.what == "stage" and asked == "production" and not holds:
        yield f"{step.entry} asked for production and is not in production"
    if step.what == "stage" and asked in ("dev", "archived") and (holds or stands != asked):
        yield f"{step.entry} was set to {asked} and is {stands}"


def unsettled(sim: Simulation, watch: RecordWatch) -> Iterator[str]:
    """What does not follow the record at the end."""
    entries = {uid_of(obj): obj for obj in sim.cluster.of(RESOURCE)}
    record = watch.records[-1] if watch.records else Family(name=FAMILY)
    if not entries:
        return  # nobody is left to say that the last of them is gone; the next to come does
    holder = record.production.uid if record.production else ""
    if holder and holder not in entries:
        yield "the record names an entry that is gone"
    staged = {uid for uid, obj in entries.items() if obj["spec"]["stage"] == "production"}
    if staged != {holder} - {""}:
        yield f"stage production: {staged}, the record: {holder or 'nobody'}"
    if record.demoting:
        yield f"still to be archived: {record.demoting}"
    for alias, held in record.aliases.items():
        if alias not in (entries.get(held.uid, {}).get("spec", {}).get("aliases") or ()):
            yield f"{alias} points to {held.entry}, which does not list it"
    listed = {alias for obj in entries.values() for alias in obj["spec"].get("aliases") or ()}
    if listed != set(record.aliases):
        yield f"aliases listed: {listed}, in the record: {set(record.aliases)}"
    for uid, obj in entries.items():
        yield from _untold(obj, uid == holder, record, sim.events)


def _untold(obj: Json, holds: bool, record: Family, told: dict[str, DomainEvent]) -> Iterator[str]:
    """What status and events do not say of an entry."""
    name, status, term = obj["metadata"]["name"], obj.get("status") or {}, record.newest(uid_of(obj))
    conditions = [Condition.model_validate(one) for one in status.get("conditions") or ()]
    said = find_condition(conditions, "InProduction")
    if (said is not None and said.status == "True") != holds:
        yield f"{name}: InProduction is {said.status if said else 'not said'}, in the record: {holds}"
    if status.get("observedGeneration") != obj["metadata"]["generation"]:
        yield f"{name}: generation {obj['metadata']['generation']} is not done"
    if holds and len(status.get("history") or ()) != len(record.terms):
        yield f"{name}: its history has {len(status.get('history') or ())} of {len(record.terms)} terms"
    if term is None:
        return
    kinds = {type(event) for event in told.values() if (event.uid, event.transition) == (uid_of(obj), str(term.number))}
    if ModelPromoted not in kinds:
        yield f"{name}: nobody was told that it was promoted"
    if term.end is not None and not kinds & {ModelArchived, ModelRolledBack}:
        yield f"{name}: nobody was told that it was replaced"


def smallest(life: Life) -> tuple[Life, Sequence[str]]:
    """Of a life in which something was wrong: without everything that it does not take."""
    wrong = live(life)
    while True:
        for one in life.smaller():
            if found := live(one):
                life, wrong = one, found
                break
        else:
            return life, wrong
