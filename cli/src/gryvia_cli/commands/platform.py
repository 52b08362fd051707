"""`gryvia up` and `gryvia demo`: the embedded platform on this machine.

What they do is imported when they do it: it is most of the program, and no other verb needs it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gryvia_cli.options import FolderOption, NoColorOption
from gryvia_cli.output import console
from gryvia_cli.session import run

PortOption = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="Port of the API server; 0 takes a free one.")
]
PersistOption = Annotated[bool, typer.Option("--persist", help="Keep the objects over a restart.")]
ProcessesOption = Annotated[
    bool, typer.Option("--processes", help="A process for each service instead of one for all.")
]
ImagesOption = Annotated[
    Path | None,
    typer.Option("--images", help="images.yaml: what runs for which image.", exists=True, dir_okay=False),
]
DEFAULT_FOLDER = Path(".gryvia")


def up(
    context: typer.Context,
    folder: FolderOption = DEFAULT_FOLDER,
    port: PortOption = 0,
    persist: PersistOption = False,
    processes: ProcessesOption = False,
    images: ImagesOption = None,
    no_color: NoColorOption = False,
) -> None:
    """Start the platform and keep it up until Ctrl-C."""
    from gryvia_cli.platform.embedded import PlatformOptions
    from gryvia_cli.platform.folder import PlatformFolder
    from gryvia_cli.platform.foreground import stay_up

    options = PlatformOptions(PlatformFolder(folder.absolute()), port, persist, processes, images)
    out = console(color=context.obj.color and not no_color)
    run(lambda: stay_up(options, out))


def demo(
    context: typer.Context,
    folder: FolderOption = DEFAULT_FOLDER,
    once: Annotated[bool, typer.Option("--once", help="End when the studies have ended.")] = False,
    port: PortOption = 0,
    processes: ProcessesOption = False,
    images: ImagesOption = None,
    no_color: NoColorOption = False,
) -> None:
    """Start the platform, run real studies on it, show how they go and what came of them."""
    from gryvia_cli.demonstration import demonstrate
    from gryvia_cli.platform.embedded import PlatformOptions
    from gryvia_cli.platform.folder import PlatformFolder

    options = PlatformOptions(PlatformFolder(folder.absolute()), port, processes=processes, images=images)
    out = console(color=context.obj.color and not no_color)
    run(lambda: demonstrate(options, out, once=once))
