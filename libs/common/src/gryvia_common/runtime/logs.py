"""Structured logs: one JSON object a line, or coloured columns for a person at a terminal.

Configured once by whoever owns the process; a service only asks structlog for a logger. The event is a constant string, what
varies is in fields, so that logs can be counted. Secrets never get here: objects are logged by key, never by body.
"""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from typing import Literal, TextIO

import structlog
from structlog.typing import EventDict

LogFormat = Literal["json", "console"]


PASS: ContextVar[tuple[str, str] | None] = ContextVar("pass", default=None)
"""Key and run id of the pass a task is in. A context variable of our own: binding structlog's for every pass costs twenty times as
much as setting this one, and few passes log anything."""


def add_pass(logger: object, method: str, event: EventDict) -> EventDict:
    """Processor: whose pass a line is from, and which."""
    current = PASS.get()
    if current is not None:
        event.setdefault("key", current[0])
        event["run_id"] = current[1]
    return event


def configure_logs(*, level: str = "info", format: LogFormat = "json", stream: TextIO | None = None) -> None:
    """Send everything, also what libraries log through the standard library, to `stream` (default: standard error)."""
    out = stream or sys.stderr
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        add_pass,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.typing.Processor
    if format == "json":
        shared.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=out.isatty())
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer], foreign_pre_chain=shared
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
