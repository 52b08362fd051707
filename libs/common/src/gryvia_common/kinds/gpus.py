"""GPUs of a job template, and the hours they were used."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gryvia_common.kinds.aijob import JobTemplate
from gryvia_common.kinds.conditions import parse_timestamp


def gpus_of(template: JobTemplate) -> int:
    """On all nodes of one job."""
    spread = template.distributed
    nodes = (spread.nodes or 1) if spread is not None and spread.enabled else 1
    return template.gpus * max(nodes, 1)


def hours_of(spans: Iterable[tuple[str, str]], now: datetime | None) -> float:
    """Of all spans (start, end; RFC 3339 or empty) together. One without an end lasts until `now`, with None it is left out."""
    seconds = 0.0
    for start, stop in spans:
        end = parse_timestamp(stop) if stop else now
        if start and end is not None:
            seconds += max((end - parse_timestamp(start)).total_seconds(), 0.0)
    return seconds / 3600
