"""`gryvia events`: the platform's domain events as they happen, from NATS."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from gryvia_cli.event_text import details, short_type
from gryvia_cli.options import KubeconfigOption, Output
from gryvia_cli.session import Session
from gryvia_cli.verb import NAMESPACE, OUTPUT, verb
from gryvia_common.bus.events import CATALOGUE
from gryvia_common.bus.subscribe import ReceivedEvent, Since, subscribe_events
from gryvia_common.errors import Terminal

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@verb({"kubeconfig": KubeconfigOption}, NAMESPACE, OUTPUT)
async def events(
    session: Session,
    types: Annotated[
        list[str] | None, typer.Argument(help="Which: `trial`, `trial.completed`, ...; all if none.")
    ] = None,
    since: Annotated[str, typer.Option("--since", help="`new`, `all`, or how far back: 10m, 2h, 1d.")] = "new",
    limit: Annotated[int, typer.Option("--limit", min=0, help="End after this many; 0 goes on until Ctrl-C.")] = 0,
) -> int:
    """Follow the events of the platform, of one namespace with -n. `-o json` prints one CloudEvent a line."""
    filters = [_filter(text) for text in types or ["*"]]
    start = parse_since(since, datetime.now(UTC))
    seen = 0
    async with session.bus() as bus:
        async for event in subscribe_events(bus, filters, since=start):
            if session.namespace is not None and event.namespace != session.namespace:
                continue
            print(_line(event, session.output), flush=True)
            seen += 1
            if limit and seen >= limit:
                break
    return 0


def parse_since(text: str, now: datetime) -> Since:
    """Terminal when it is none of the forms."""
    if text == "new":
        return "new"
    if text == "all":
        return "all"
    number, unit = text[:-1], text[-1:]
    if unit in UNITS and number.isdigit():
        return now - timedelta(seconds=int(number) * UNITS[unit])
    raise Terminal(f"--since {text!r}: write `new`, `all` or a duration such as 10m, 2h, 1d", reason="Usage")


def _filter(text: str) -> tuple[str, str]:
    """Terminal for a noun or verb that no event has: silence would look like "nothing happens"."""
    noun, _, verb = text.removeprefix("gryvia.").partition(".")
    known = {(one.noun, one.verb) for one in CATALOGUE}
    fits = [pair for pair in known if noun in ("", "*", pair[0]) and verb in ("", "*", pair[1])]
    if not fits:
        nouns = sorted({pair[0] for pair in known})
        raise Terminal(f"no event is called {text!r}; there are {', '.join(nouns)}", reason="Usage")
    return noun or "*", verb or "*"


def _line(event: ReceivedEvent, output: Output | None) -> str:
    if output in (Output.JSON, Output.YAML):
        prefix = "---\n" if output == Output.YAML else ""
        return prefix + json.dumps(_structured(event))
    return f"{event.time.astimezone():%H:%M:%S}  {short_type(event):<18} {event.subject:<32} {details(event)}"


def _structured(event: ReceivedEvent) -> dict[str, object]:
    """CloudEvents 1.0, structured mode (JSON is YAML too)."""
    return {
        "specversion": "1.0",
        "id": event.id,
        "type": event.type,
        "source": event.source,
        "subject": event.subject,
        "time": event.time.isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": event.data,
    }
