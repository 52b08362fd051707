"""`gryvia`: see `gryvia --help`."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gryvia_cli.commands.demo import demo
from gryvia_cli.commands.events import events
from gryvia_cli.commands.jobs import cancel, delete, status, submit, validate
from gryvia_cli.commands.logs import logs
from gryvia_cli.commands.platform import up
from gryvia_cli.commands.read import get_object, list_objects
from gryvia_cli.commands.trials import trials
from gryvia_cli.session import Session

app = typer.Typer(
    name="gryvia",
    help="Machine learning on Kubernetes: the embedded platform, and the verbs for what runs on any platform.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"gryvia {version('gryvia-cli')}")
        raise typer.Exit


@app.callback()
def main_options(
    context: typer.Context,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="Kubeconfig of the platform.", exists=True, dir_okay=False)
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text.", envvar="NO_COLOR")] = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Session(kubeconfig=kubeconfig, color=not no_color)


PLATFORM, WORKLOADS, ML, OBSERVE = "Platform", "Workloads", "ML", "Observe"

app.command(rich_help_panel=PLATFORM)(up)
app.command(rich_help_panel=PLATFORM)(demo)
app.command(rich_help_panel=WORKLOADS)(submit)
app.command(rich_help_panel=WORKLOADS)(validate)
app.command("list", rich_help_panel=WORKLOADS)(list_objects)
app.command("get", rich_help_panel=WORKLOADS)(get_object)
app.command(rich_help_panel=WORKLOADS)(status)
app.command(rich_help_panel=WORKLOADS)(logs)
app.command(rich_help_panel=WORKLOADS)(cancel)
app.command(rich_help_panel=WORKLOADS)(delete)
app.command(rich_help_panel=ML)(trials)
app.command(rich_help_panel=OBSERVE)(events)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
