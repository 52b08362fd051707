"""`gryvia list` and `gryvia get`: what is there, of any kind."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from gryvia_cli.names import kind_of
from gryvia_cli.options import AllNamespaces, ContextOption, NamespaceOption, Output, OutputOption
from gryvia_cli.output import console, object_rows, print_table, print_value
from gryvia_cli.session import Session, run
from gryvia_common.errors import Gone, Terminal

KindArgument = Annotated[str, typer.Argument(help="jobs, tuners, workflows, models, workspaces, quotas, ...")]


def list_objects(
    context: typer.Context,
    kind: KindArgument,
    namespace: NamespaceOption = "default",
    all_namespaces: AllNamespaces = False,
    output: OutputOption = Output.TABLE,
    kube_context: ContextOption = None,
) -> None:
    """List the objects of a kind."""
    session: Session = context.obj

    async def work() -> int:
        found = kind_of(kind)
        everywhere = all_namespaces or not found.namespaced
        async with session.kube(kube_context) as kube:
            objects = await kube.list(found.resource, None if everywhere else namespace)
        if output != Output.TABLE:
            print_value(objects, output)
            return 0
        if not objects:
            print(f"No {found.plural} found" + ("." if everywhere else f" in namespace {namespace}."))
            return 0
        headers, rows = object_rows(
            found, objects, now=datetime.now(UTC), namespaced=all_namespaces and found.namespaced
        )
        print_table(console(color=session.color), headers, rows)
        return 0

    run(work)


def get_object(
    context: typer.Context,
    kind: KindArgument,
    name: Annotated[str, typer.Argument(help="Name of the object.")],
    namespace: NamespaceOption = "default",
    output: OutputOption = Output.YAML,
    kube_context: ContextOption = None,
) -> None:
    """Show one object whole."""
    session: Session = context.obj

    async def work() -> int:
        found = kind_of(kind)
        async with session.kube(kube_context) as kube:
            try:
                obj = await kube.get(found.resource, namespace if found.namespaced else "", name)
            except Gone as error:
                where = f" in namespace {namespace}" if found.namespaced else ""
                raise Terminal(f"{found.name} {name} not found{where}", reason="NotFound") from error
        obj["metadata"].pop("managedFields", None)
        if output == Output.TABLE:
            print_table(
                console(color=session.color), *object_rows(found, [obj], now=datetime.now(UTC), namespaced=False)
            )
        else:
            print_value(obj, output)
        return 0

    run(work)
