"""What makes a function a verb of the command line: the global options, a Session made of them, an exit code.

A verb is an async function of a Session and its own parameters that returns its exit code (None is 0). `verb` gives it the
global options as well, so that `gryvia -n team list jobs` and `gryvia list jobs -n team` mean the same; what stands after the verb
wins. (Rejected: the options written out in every command, where the twelfth command forgets one.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, get_type_hints

import typer

from gryvia_cli.options import ContextOption, KubeconfigOption, NamespaceOption, NoColorOption, OutputOption
from gryvia_cli.session import Session, run

P = ParamSpec("P")
Verb = Callable[Concatenate[Session, P], Coroutine[Any, Any, int | None]]

CLUSTER = {"kubeconfig": KubeconfigOption, "context": ContextOption}
NAMESPACE = {"namespace": NamespaceOption}
OUTPUT = {"output": OutputOption}


def verb(*options: dict[str, Any]) -> Callable[[Verb[P]], Callable[..., None]]:
    """`options` are the global ones that mean something to this verb; --no-color does to all."""
    names = {name: kind for group in options for name, kind in group.items()}

    def decorate(function: Verb[P]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        bound: Callable[..., Coroutine[Any, Any, int | None]] = function
        _, *own = inspect.signature(function).parameters.values()

        def command(**values: Any) -> None:
            session: Session = values.pop("typer_context").obj
            given = {name: values.pop(name) for name in names}
            if values.pop("no_color"):
                session = replace(session, color=False)
            session = replace(session, **{name: value for name, value in given.items() if value is not None})
            run(lambda: bound(session, **values))

        parameters = [
            inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
            *(one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY) for one in own),
            *(_global(name, kind, None) for name, kind in names.items()),
            _global("no_color", NoColorOption, False),
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        command.__doc__ = function.__doc__
        command.__name__ = function.__name__
        return command

    return decorate


def _global(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
