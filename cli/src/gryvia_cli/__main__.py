"""`gryvia`: see `gryvia --help`."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from gryvia_cli.commands.events import events
from gryvia_cli.commands.jobs import cancel, delete, submit, validate
from gryvia_cli.commands.logs import logs
from gryvia_cli.commands.models import models
from gryvia_cli.commands.platform import demo, up
from gryvia_cli.commands.read import get_object, list_objects, queue, quota
from gryvia_cli.commands.status import status
from gryvia_cli.commands.trials import trials
from gryvia_cli.commands.workflows import workflows
from gryvia_cli.options import ContextOption, KubeconfigOption, NamespaceOption, NoColorOption, OutputOption
from gryvia_cli.session import Session

app = typer.Typer(
    name="gryvia",
    help="Machine learning on Kubernetes: the embedded platform, and the verbs for what runs on any platform.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"gryvia {version('gryvia-cli')}")
        raise typer.Exit


@app.callback()
def main_options(
    context: typer.Context,
    kubeconfig: KubeconfigOption = None,
    kube_context: ContextOption = None,
    namespace: NamespaceOption = None,
    output: OutputOption = None,
    no_color: NoColorOption = False,
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Session(kubeconfig, kube_context, namespace, output, color=not no_color)


PLATFORM, WORKLOADS, CLUSTER = "Platform", "Workloads", "Cluster"
TENANTS, ML, OBSERVE, UTILITIES = "Tenants & Billing", "ML", "Observe", "Utilities"

app.command(rich_help_panel=PLATFORM)(up)
app.command(rich_help_panel=PLATFORM)(demo)
app.command(rich_help_panel=WORKLOADS)(submit)
app.command(rich_help_panel=WORKLOADS)(status)
app.command(rich_help_panel=WORKLOADS)(logs)
app.command(rich_help_panel=WORKLOADS)(cancel)
app.command(rich_help_panel=WORKLOADS)(delete)
app.command("list", rich_help_panel=CLUSTER)(list_objects)
app.command("get", rich_help_panel=CLUSTER)(get_object)
app.command(rich_help_panel=CLUSTER)(queue)
app.command(rich_help_panel=TENANTS)(quota)
app.command(rich_help_panel=ML)(trials)
app.add_typer(workflows, rich_help_panel=ML)
app.add_typer(models, rich_help_panel=ML)
app.command(rich_help_panel=OBSERVE)(events)
app.command(rich_help_panel=UTILITIES)(validate)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
