"""The record of a model family: what is in production, since when, what was before, and which alias points where.

`spec.stage` lies in many objects, and no API write moves "production" from one of them to another in one instant. So the truth
is one object a family, the ConfigMap `gryvia-family-<modelName>`, changed by compare-and-set only; `spec.stage` follows it. The
registry writes the record, the CLI and others read it through `read_family`.

Invariants, checked at every reading: terms are newest first, each ends before or when the next begins, only the newest may be
open, and `production` names the entry of the open one. A record that breaks them was edited by hand and is not believed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.model import Model
from gryvia_common.kinds.modelregistry import Stage
from gryvia_common.kinds.wire import Int64, Time
from gryvia_common.kube.children import MANAGED_BY, MANAGER
from gryvia_common.kube.names import is_label_value, is_subdomain
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP

FAMILY_LABEL = f"{GROUP}/model-family"
RECORD_KEY = "family.json"
TERMS = 500
"""Terms in production that a record keeps: about 150 KB, of the megabyte a ConfigMap may have."""

Cause = Literal["Promoted", "ByHand", "RolledBack"]


class Holder(Model):
    """An entry, as the one object that it is."""

    entry: str
    uid: str


class Term(Holder):
    """A time in production. `number`: of the change that began it. `generation`: the entry's up to which its stage is accounted
    for: what an older view of the entry says of its stage is known. `stage`: the one it came from. `note`: why it was promoted,
    with the numbers."""

    version: str
    number: Int64
    generation: Int64
    stage: Stage
    start: Time
    cause: Cause
    note: str = ""
    approved_by: str = ""
    end: Time | None = None
    reason: str = ""
    successor: str = ""


class Alias(Holder):
    """Where an alias points. `lost`: uids of entries that list it too and from which a newer claim took it."""

    lost: tuple[str, ...] = ()


class Family(Model):
    """See the module's docstring. `change` counts the changes; `demoting`: replaced, their stage still to be written."""

    name: str
    change: Int64 = 0
    production: Holder | None = None
    aliases: dict[str, Alias] = Field(default_factory=dict)
    demoting: tuple[Holder, ...] = ()
    terms: tuple[Term, ...] = ()

    @property
    def current(self) -> Term | None:
        """The term of the production entry."""
        return self.terms[0] if self.terms and self.terms[0].end is None else None

    def newest(self, uid: str) -> Term | None:
        """The newest term of this entry."""
        return next((term for term in self.terms if term.uid == uid), None)

    def named(self) -> list[Holder]:
        """Everybody that the record names as somebody who is there, each once."""
        found = [*([self.production] if self.production else []), *self.aliases.values(), *self.demoting]
        return list({one.uid: one for one in found}.values())

    @model_validator(mode="after")
    def _is_consistent(self) -> Family:
        current = self.current
        if (current.uid if current else None) != (self.production.uid if self.production else None):
            raise ValueError("production is not the entry whose term is open")
        following: Term | None = None
        for term in self.terms:
            if following is not None and (
                term.end is None or parse_timestamp(term.end) > parse_timestamp(following.start)
            ):
                raise ValueError(f"the terms of {term.entry} and {following.entry} overlap")
            if term.end is not None and parse_timestamp(term.end) < parse_timestamp(term.start):
                raise ValueError(f"a term of {term.entry} ends before it begins")
            if term.number > (self.change if following is None else following.number - 1):
                raise ValueError(f"the change of {term.entry} has number {term.number}, which is out of order")
            following = term
        return self


ParseFamily = Callable[[str, str], Family]


def record_name(model_name: str) -> str:
    """Of the ConfigMap. A family whose name cannot be part of one is found by a hash."""
    if is_subdomain(model_name, longest=200):
        return f"gryvia-family-{model_name}"
    return f"gryvia-family-x-{hashlib.sha256(model_name.encode()).hexdigest()[:20]}"


def record_manifest(model_name: str, namespace: str) -> Json:
    """The record of a family that nothing is known of yet."""
    name = record_name(model_name)
    label = model_name if is_label_value(model_name) else name.removeprefix("gryvia-family-")[:63].rstrip("-._")
    labels = {MANAGED_BY: MANAGER, FAMILY_LABEL: label}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "data": record_data(Family(name=model_name)),
    }


def record_data(family: Family) -> dict[str, str]:
    return {RECORD_KEY: family.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=True)}


def read_family(model_name: str, config_map: Json, parse: ParseFamily | None = None) -> Family:
    """Raises ValueError, with a sentence, for what is no record of this family. `parse`: parse_family with a memory."""
    text = (config_map.get("data") or {}).get(RECORD_KEY)
    if not isinstance(text, str):
        raise ValueError(f"data[{RECORD_KEY}] is missing")
    return (parse or parse_family)(model_name, text)


def parse_family(model_name: str, text: str) -> Family:
    try:
        family = Family.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"data[{RECORD_KEY}]{f' at {where}' if where else ''}: {first['msg']}") from None
    if family.name != model_name:
        raise ValueError(f"data[{RECORD_KEY}] is the record of the family {family.name!r}, not of {model_name!r}")
    return family
