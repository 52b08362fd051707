"""`gryvia list`, `gryvia get`, `gryvia queue`, `gryvia quota`: what is there, of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from gryvia_cli.names import NODE_WORDS, kind_of, words_of
from gryvia_cli.options import AllNamespaces, Output
from gryvia_cli.output import console, print_table, print_value
from gryvia_cli.session import Session
from gryvia_cli.tables import Rows, node_rows, object_rows, queue_rows, with_namespace
from gryvia_cli.verb import CLUSTER, NAMESPACE, OUTPUT, verb
from gryvia_common.errors import Gone, Terminal
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.kind import Kind
from gryvia_common.kinds.quota import QUOTA
from gryvia_common.kube.objects import Json, metadata
from gryvia_common.kube.resources import NODES, Resource

KindArgument = Annotated[str, typer.Argument(help="jobs, tuners, workflows, models, quotas, nodes, experiments, ...")]
WAITING = frozenset({"", "Pending", "Queued"})


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def list_objects(session: Session, kind: KindArgument, all_namespaces: AllNamespaces = False) -> int:
    """List the objects of a kind, or the nodes."""
    return await show_list(session, kind, all_namespaces=all_namespaces)


async def show_list(
    session: Session, kind: str, *, all_namespaces: bool, wanted: Callable[[Json], bool] = lambda _: True
) -> int:
    """The objects that are `wanted`, as a table or for a program; the exit code."""
    resource, found = _resource(kind)
    namespace = None if all_namespaces or not resource.namespaced else session.place
    async with session.kube() as kube:
        objects = [obj for obj in await kube.list(resource, namespace) if wanted(obj)]
    now = datetime.now(UTC)
    rows = object_rows(found, objects, now=now, namespaced=all_namespaces and resource.namespaced) if found else None
    _show(session, objects, rows or node_rows(objects, now), words_of(resource.kind), namespace)
    return 0


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def get_object(
    session: Session, kind: KindArgument, name: Annotated[str, typer.Argument(help="Name of the object.")]
) -> int:
    """Show one object whole."""
    resource, found = _resource(kind)
    async with session.kube() as kube:
        try:
            obj = await kube.get(resource, session.place if resource.namespaced else "", name)
        except Gone as error:
            where = f" in namespace {session.place}" if resource.namespaced else ""
            raise Terminal(f"{resource.kind} {name} not found{where}", reason="NotFound") from error
    obj["metadata"].pop("managedFields", None)
    if session.output == Output.TABLE:
        now = datetime.now(UTC)
        rows = object_rows(found, [obj], now=now, namespaced=False) if found else node_rows([obj], now)
        print_table(console(color=session.color), *rows)
    else:
        print_value(obj, session.output or Output.YAML)
    return 0


@verb(CLUSTER, NAMESPACE, OUTPUT)
async def queue(session: Session, all_namespaces: AllNamespaces = False) -> int:
    """Jobs that wait, the next one first: by priority, then by age."""
    namespace = None if all_namespaces else session.place
    async with session.kube() as kube:
        jobs = await kube.list(AI_JOB.resource, namespace)
    waiting = sorted((job for job in jobs if _phase(job) in WAITING), key=_turn)
    headers, rows = queue_rows(waiting, datetime.now(UTC))
    shown = with_namespace(headers, rows, waiting) if all_namespaces else (headers, rows)
    _show(session, waiting, shown, "waiting jobs", namespace)
    return 0


@verb(CLUSTER, OUTPUT)
async def quota(
    session: Session, team: Annotated[str | None, typer.Argument(help="A team; all of them if none.")] = None
) -> int:
    """What teams may use, and what they do use."""
    async with session.kube() as kube:
        quotas = await kube.list(QUOTA.resource)
    if team is not None:
        quotas = [one for one in quotas if team in ((one.get("spec") or {}).get("team"), metadata(one)["name"])]
        if not quotas:
            raise Terminal(f"no quota of a team {team}", reason="NotFound")
    rows = object_rows(QUOTA, quotas, now=datetime.now(UTC), namespaced=False)
    _show(session, quotas, rows, words_of(QUOTA.name), None)
    return 0


def _resource(text: str) -> tuple[Resource, Kind[Any, Any] | None]:
    """Nodes are no kind of ours."""
    if text.lower() in NODE_WORDS:
        return NODES, None
    kind = kind_of(text)
    return kind.resource, kind


def _show(session: Session, objects: Sequence[Json], rows: Rows, what: str, namespace: str | None) -> None:
    if session.output in (Output.JSON, Output.YAML):
        print_value(list(objects), session.output)
    elif not objects:
        print(f"No {what} found" + (f" in namespace {namespace}." if namespace else "."))
    else:
        print_table(console(color=session.color), *rows)


def _phase(job: Json) -> str:
    return str((job.get("status") or {}).get("phase") or "")


def _turn(job: Json) -> tuple[int, str, str]:
    return -int((job.get("spec") or {}).get("priority") or 0), metadata(job)["creationTimestamp"], metadata(job)["name"]
