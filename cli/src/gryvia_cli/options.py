"""The options that many commands share, defined once so that they read and behave alike everywhere."""

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


NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace to look in.", envvar="GRYVIA_NAMESPACE")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in every namespace.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]
ContextOption = Annotated[str | None, typer.Option("--context", help="Context of the kubeconfig.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
FileOption = Annotated[Path, typer.Option("--file", "-f", help="Manifest, `-` for standard input.")]
FolderOption = Annotated[Path, typer.Option("--folder", help="Where the embedded platform keeps its files.")]
