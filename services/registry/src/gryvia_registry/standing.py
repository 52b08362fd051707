"""Where an entry stands in its family: what a pass knows, read once.

The record is the truth and the entry may be seen late, or the other way round: they come on different watches. So nothing that
is not seen counts as gone before the API server was asked (`absent`), and what the entry's spec asks for by its stage counts only when
its generation is newer than what the record accounts for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gryvia_common.errors import Gone
from gryvia_common.kinds.conditions import find_condition
from gryvia_common.kinds.families import Family, Holder, ParseFamily, Term, read_family, record_name
from gryvia_common.kinds.model import Condition
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY, Stage
from gryvia_common.kube.objects import Json, metadata, uid_of, version_of
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import ActionContext, Lookup, Ref, Selection
from gryvia_common.runtime.plan import Action
from gryvia_common.runtime.world import World
from gryvia_models import claims
from gryvia_models import family as changes
from gryvia_registry.entry import Entry
from gryvia_registry.serving import selection

IN_PRODUCTION = "InProduction"
LOOK = "look"
LOOK_AGAIN = 30.0
RECORD = "record"
CANDIDATES = 5
"""Entries that a rollback may go back to, newest first; the first of them that is still there is taken."""


@dataclass(frozen=True, slots=True)
class Standing:
    """`record` None: there is none yet, `family` is an empty one then. `unreadable`: why the record is not believed."""

    entry: Entry
    world: World
    now: datetime
    record: Json | None
    family: Family
    unreadable: str

    @property
    def stage(self) -> Stage:
        return self.entry.spec.stage or "dev"

    @property
    def myself(self) -> Holder:
        return Holder(entry=self.entry.name, uid=self.entry.uid)

    @property
    def term(self) -> Term | None:
        """The entry's newest time in production."""
        return self.family.newest(self.entry.uid)

    @property
    def holds(self) -> bool:
        current = self.family.current
        return current is not None and current.uid == self.entry.uid

    @property
    def confirmed(self) -> bool:
        """Whether the status tells of the newest term already: the stage was seen as production in it."""
        term = self.term
        return term is not None and self.entry.status.production_change == term.number

    @property
    def in_production(self) -> bool:
        """By the record, and by the stage, which follows it."""
        return self.holds and self.stage == "production"

    @property
    def told_end(self) -> bool:
        """Whether the status tells of the end of the newest term already."""
        said = self.said(IN_PRODUCTION)
        return self.confirmed and said is not None and said.status == "False"

    @property
    def rolled_back(self) -> Term | None:
        """The newest term, if a rollback ended it and nothing was asked for since."""
        term = self.term
        return term if term is not None and term.reason == changes.ROLLED_BACK and self.stage == "archived" else None

    @property
    def proven(self) -> bool:
        """Whether conditions were written for this generation: that write carried the resourceVersion."""
        said = self.said("ModelRegistered")
        return said is not None and said.observed_generation == self.entry.generation

    def said(self, type: str) -> Condition | None:
        """The condition, as the status has it."""
        return find_condition(self.entry.status.conditions, type)

    @property
    def demoted(self) -> bool:
        return any(one.uid == self.entry.uid for one in self.family.demoting)

    @property
    def behind(self) -> bool:
        """The status tells of a change that the record as it is seen does not have: it is an old one, unless the API server says
        that there is no other (somebody deleted it, to begin a new history)."""
        if not self._seems_behind:
            return False
        asked = self.world.observation(RECORD)
        return asked is None or bool(asked.error) or asked.value != (version_of(self.record) if self.record else 0)

    @property
    def _seems_behind(self) -> bool:
        newer = (self.entry.status.production_change or 0) > self.family.change or (self.holds and self.told_end)
        return not self.unreadable and newer

    @property
    def record_name(self) -> str:
        return record_name(self.entry.spec.model_name)

    def seen(self, who: Holder) -> Json | None:
        """The entry as it is known here, None when it is not, or is another one of the name."""
        found = self.world.get(MODEL_REGISTRY.resource, self.entry.namespace, who.entry)
        return found if found is not None and uid_of(found) == who.uid else None

    def looks(self) -> tuple[Action, ...]:
        """To ask the API server about those who are not seen here, and about a record that is an old one, or seems to be."""
        if self._seems_behind:
            named = {"namespace": self.entry.namespace, "name": self.record_name, "record": True}
            return (Action(LOOK, RECORD, named, LOOK_AGAIN),)
        return tuple(
            Action(LOOK, f"{one.entry}/{one.uid}", {"namespace": self.entry.namespace, "name": one.entry}, LOOK_AGAIN)
            for one in self.family.named()
            if one.uid != self.entry.uid and self.seen(one) is None
        )

    def absent(self) -> list[Holder]:
        """Those of the named who are gone: the API server said so."""
        asked = {action.key: self.world.observation(action.key) for action in self.looks()}
        answers = {key: found.value for key, found in asked.items() if found is not None and not found.error}
        return [one for one in self.family.named() if answers.get(f"{one.entry}/{one.uid}", one.uid) != one.uid]


def read(entry: Entry, world: World, now: datetime, parse: ParseFamily) -> Standing:
    record = world.get(CONFIG_MAPS, entry.namespace, record_name(entry.spec.model_name))
    family, problem = _family(entry.spec.model_name, record, parse)
    return Standing(entry, world, now, record, family, problem)


def refs(entry: Entry, get: Lookup, parse: ParseFamily) -> Iterable[Ref | Selection]:
    """The record, whom it names, whom a rollback could go back to, and the services that serve the entry."""
    name = record_name(entry.spec.model_name)
    yield Ref(CONFIG_MAPS, entry.namespace, name)
    yield from (selection(entry), claims.selection(entry.namespace, entry.spec.model_name))
    family, _ = _family(entry.spec.model_name, get(CONFIG_MAPS, entry.namespace, name), parse)
    named = family.named()
    current = family.current
    if current is not None and current.uid == entry.uid:
        named += changes.previous(family, current)[:CANDIDATES]
    for one in named:
        yield Ref(MODEL_REGISTRY.resource, entry.namespace, one.entry)


async def look(context: ActionContext, arguments: Mapping[str, object]) -> object:
    """The uid of the entry of this name, empty when there is none; of a record its version, 0 when there is none."""
    record = bool(arguments.get("record"))
    resource = CONFIG_MAPS if record else MODEL_REGISTRY.resource
    try:
        live = await context.kube.get(resource, str(arguments["namespace"]), str(arguments["name"]))
    except Gone:
        return 0 if record else ""
    return version_of(live) if record else uid_of(live)


def _family(model_name: str, record: Json | None, parse: ParseFamily) -> tuple[Family, str]:
    if record is None or not (record.get("data") or {}):
        problem = "" if record is None else f"ConfigMap {metadata(record)['name']} holds no data"
        return Family(name=model_name), problem
    try:
        return read_family(model_name, record, parse), ""
    except ValueError as error:
        return Family(name=model_name), f"ConfigMap {metadata(record)['name']}: {error}"
