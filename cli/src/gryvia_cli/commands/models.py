"""`gryvia models`: entries of the registry, their way to production, and what was in production when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from gryvia_cli.approval import APPROVAL, Decision, answer, approver, earlier
from gryvia_cli.commands.read import show_list
from gryvia_cli.editing import edit, read
from gryvia_cli.model_text import (
    HISTORY_HEADERS,
    check_ladder,
    condition,
    history_rows,
    local,
    model_facts,
    parse_moment,
    stage_of,
    term_at,
    term_wire,
)
from gryvia_cli.options import AllNamespaces, Output, YesOption
from gryvia_cli.output import console, print_table, print_value, say
from gryvia_cli.session import Session
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.conditions import timestamp
from gryvia_common.kinds.families import Family, read_family, record_name
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, annotations_of, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, GROUP

POLL_SECONDS = 0.5
ROLLBACK = f"{GROUP}/rollback-requested"

models = typer.Typer(
    name="models", help="The model registry: entries, promotion, what was in production when.", no_args_is_help=True
)

EntryName = Annotated[str, typer.Argument(help="Name of the entry.")]
CommentOption = Annotated[str, typer.Option("--comment", help="Why; it is kept with the answer.")]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait until the registry has acted on it, and print what it says.")
]


class Target(StrEnum):
    """Where an entry can be promoted to."""

    STAGING = "staging"
    PRODUCTION = "production"
    ARCHIVED = "archived"


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def list_models(
    session: Session,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only the entries of this family.")] = None,
    all_namespaces: AllNamespaces = False,
) -> int:
    """List registry entries; the same as `gryvia list models`."""
    return await show_list(
        session,
        "models",
        all_namespaces=all_namespaces,
        wanted=lambda obj: model is None or (obj.get("spec") or {}).get("modelName") == model,
    )


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def get_model(session: Session, entry: EntryName) -> int:
    """Show an entry: its files, its stage, its scores, what the gate decided and why."""
    async with session.kube() as kube:
        obj = await read(kube, MODEL_REGISTRY, session.place, entry)
    metadata(obj).pop("managedFields", None)
    if session.output in (Output.JSON, Output.YAML):
        print_value(obj, session.output)
    else:
        print_table(console(color=session.color), ("FIELD", "VALUE"), model_facts(obj, datetime.now(UTC)))
    return 0


@verb(CLUSTER, NAMESPACE)
async def promote(
    session: Session,
    entry: EntryName,
    to: Annotated[Target, typer.Option("--to", help="The next stage.")] = Target.PRODUCTION,
    yes: YesOption = False,
    wait: WaitOption = False,
) -> int:
    """Move an entry one stage on: dev -> staging -> production -> archived. In production it replaces what is there."""
    if not yes:
        typer.confirm(f"Promote {entry} to {to}?", abort=True)

    def change(obj: Json) -> Json:
        check_ladder(obj, to)
        return {"spec": {"stage": str(to)}}

    async with session.kube() as kube:
        obj = await edit(kube, MODEL_REGISTRY, session.place, entry, change)
        print(f"model {entry}: stage {to}", flush=True)
        return await _until_acted_on(kube, session, obj, to) if wait else 0


@verb(CLUSTER, NAMESPACE)
async def rollback(session: Session, entry: EntryName, yes: YesOption = False, wait: WaitOption = False) -> int:
    """Give the place in production back to what was there before this entry."""
    if not yes:
        typer.confirm(f"Roll {entry} back?", abort=True)

    def change(obj: Json) -> Json:
        if stage_of(obj) != "production":
            raise Terminal(
                f"model {entry} is in stage {stage_of(obj)}; only what is in production is rolled back",
                reason="Conflict",
            )
        if not (obj.get("status") or {}).get("previousVersion"):
            family = obj["spec"]["modelName"]
            raise Terminal(
                f"model {entry} has nothing before it to go back to (`gryvia models history {family}`)",
                reason="Conflict",
            )
        return {"metadata": {"annotations": {ROLLBACK: f"cli at {timestamp(datetime.now(UTC))}"}}}

    async with session.kube() as kube:
        obj = await edit(kube, MODEL_REGISTRY, session.place, entry, change)
        print(f"model {entry}: rollback to {obj['status']['previousVersion']} asked for", flush=True)
        return await _until_rolled_back(kube, session, entry) if wait else 0


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def history(
    session: Session,
    model: Annotated[str, typer.Argument(help="Name of the family, or of one of its entries.")],
    at: Annotated[str | None, typer.Option("--at", help='What was in production then: "2026-11-24 12:00".')] = None,
) -> int:
    """Show what of a family was in production from when to when, newest first; with --at what was at one moment."""
    now = datetime.now(UTC)
    moment = parse_moment(at, now) if at else None
    async with session.kube() as kube:
        family = await read_record(kube, session.place, model)
    if moment is not None:
        return _say_then(session, family, moment)
    if session.output in (Output.JSON, Output.YAML):
        print_value([term_wire(term) for term in family.terms], session.output)
    elif not family.terms:
        print(f"Nothing of model {family.name} has been in production yet.")
    else:
        print_table(console(color=session.color), HISTORY_HEADERS, history_rows(family.terms, now))
    return 0


@verb(CLUSTER, NAMESPACE)
async def approve(session: Session, entry: EntryName, comment: CommentOption = "") -> int:
    """Let an entry into production whose promotion policy asks for approval."""
    return await _answer(session, entry, "Approved", comment)


@verb(CLUSTER, NAMESPACE)
async def reject(session: Session, entry: EntryName, comment: CommentOption = "") -> int:
    """Refuse an entry whose promotion policy asks for approval."""
    return await _answer(session, entry, "Rejected", comment)


async def _answer(session: Session, entry: str, decision: Decision, comment: str) -> int:
    async with session.kube() as kube:
        by = await approver(kube)

        def change(obj: Json) -> Json:
            if not ((obj.get("spec") or {}).get("promotionPolicy") or {}).get("requireApproval"):
                raise Terminal(
                    f"model {entry} asks for no approval (promotionPolicy.requireApproval); "
                    f"promote it by hand: `gryvia models promote {entry}`",
                    reason="NotAsked",
                )
            if stage_of(obj) != "staging":
                raise Terminal(
                    f"model {entry} is in stage {stage_of(obj)}; it waits for approval in staging only",
                    reason="Conflict",
                )
            if (said := earlier(obj, APPROVAL)) == f"{decision} by {by}":
                raise Terminal(f"model {entry} was {said} already", reason="Conflict")
            return answer(APPROVAL, decision, by, comment)

        await edit(kube, MODEL_REGISTRY, session.place, entry, change)
    print(f"model {entry}: {decision} by {by}")
    return 0


async def read_record(kube: Kube, namespace: str, model: str) -> Family:
    """Of the family, or of the family of the entry of this name; an empty one when nothing was in production yet. Terminal when
    there is neither, or the record was spoiled."""
    for name in dict.fromkeys([model, await _family_of(kube, namespace, model)]):
        if name is None:
            continue
        try:
            return read_family(name, await kube.get(CONFIG_MAPS, namespace, record_name(name)))
        except Gone:
            continue
        except ValueError as error:
            raise Terminal(
                f"the record of model {name} (ConfigMap {record_name(name)}) cannot be believed: {error}",
                reason="Record",
            ) from error
    entries = await kube.list(MODEL_REGISTRY.resource, namespace)
    families = sorted({str((one.get("spec") or {}).get("modelName")) for one in entries})
    if model in families or any(metadata(one)["name"] == model for one in entries):
        return Family(name=model)
    raise Terminal(
        f"no model {model} in namespace {namespace}; there are {', '.join(families) or 'none'}", reason="NotFound"
    )


async def _family_of(kube: Kube, namespace: str, entry: str) -> str | None:
    try:
        obj = await kube.get(MODEL_REGISTRY.resource, namespace, entry)
    except Gone:
        return None
    return str(obj["spec"]["modelName"])


def _say_then(session: Session, family: Family, moment: datetime) -> int:
    """Exit code 1 when nothing was in production then."""
    term = term_at(family, moment)
    if session.output in (Output.JSON, Output.YAML):
        print_value(term_wire(term) if term else None, session.output)
    else:
        out, then = console(color=session.color), local(timestamp(moment))
        if term is None:
            say(out, f"nothing of model {family.name} was in production at {then}")
        else:
            end = f"until {local(term.end)}" if term.end else "and still is"
            say(
                out,
                f"{term.entry} (version {term.version}) was in production at {then}: since {local(term.start)}, {end}",
            )
    return 0 if term else 1


async def _until_acted_on(kube: Kube, session: Session, changed: Json, to: str) -> int:
    """Until the status speaks of this spec and has the entry where it was sent, or says why not; the exit code."""
    name, generation = metadata(changed)["name"], metadata(changed)["generation"]
    while True:
        obj = await read(kube, MODEL_REGISTRY, session.place, name)
        if (obj.get("status") or {}).get("observedGeneration", 0) >= generation:
            for type in ("SpecValid", "FamilyRecord"):
                if condition(obj, type).get("status") == "False":
                    print(f"model {name}: {condition(obj, type).get('message')}")
                    return 1
            found = condition(obj, "InProduction")
            if to == Target.STAGING or (found.get("status") == "True") is (to == Target.PRODUCTION):
                said = "in production" if found.get("status") == "True" else f"{found.get('reason', stage_of(obj))}:"
                print(f"model {name}: {said} {found.get('message', '')}".rstrip(": "))
                return 0
        await asyncio.sleep(POLL_SECONDS)


async def _until_rolled_back(kube: Kube, session: Session, entry: str) -> int:
    """The registry takes the annotation off when it is done (the stage is archived in the same write), or has refused."""
    while True:
        obj = await read(kube, MODEL_REGISTRY, session.place, entry)
        seen = (obj.get("status") or {}).get("observedGeneration", 0) >= metadata(obj)["generation"]
        if seen and ROLLBACK not in annotations_of(obj):
            print(f"model {entry}: {condition(obj, 'RolledBack').get('message') or stage_of(obj)}")
            return 0 if stage_of(obj) != "production" else 1
        await asyncio.sleep(POLL_SECONDS)


models.command("list")(list_models)
models.command("get")(get_model)
models.command()(promote)
models.command()(rollback)
models.command()(history)
models.command()(approve)
models.command()(reject)
