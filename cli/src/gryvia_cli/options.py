"""The options that many commands share, defined once so that they read and behave alike everywhere.

The global ones (which cluster, which namespace, how to print) are taken before the verb and after it; see verb.py.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Output(StrEnum):
    """How a command prints."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


GLOBAL = "Global options"

KubeconfigOption = Annotated[
    Path | None,
    typer.Option("--kubeconfig", help="Kubeconfig of the platform.", dir_okay=False, rich_help_panel=GLOBAL),
]
ContextOption = Annotated[
    str | None, typer.Option("--context", help="Context of the kubeconfig.", rich_help_panel=GLOBAL)
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Namespace; `default` if none.", envvar="GRYVIA_NAMESPACE", rich_help_panel=GLOBAL
    ),
]
OutputOption = Annotated[Output | None, typer.Option("--output", "-o", help="How to print.", rich_help_panel=GLOBAL)]
NoColorOption = Annotated[bool, typer.Option("--no-color", help="Plain text.", rich_help_panel=GLOBAL)]

AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in every namespace.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
FileOption = Annotated[Path, typer.Option("--file", "-f", help="Manifest, `-` for standard input.")]
FolderOption = Annotated[Path, typer.Option("--folder", help="Where the embedded platform keeps its files.")]
