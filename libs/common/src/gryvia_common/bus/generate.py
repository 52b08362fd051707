"""Writes docs/events.md and docs/asyncapi.yaml from the event classes: `python -m gryvia_common.bus.generate
[--check] [docs]`.

The documentation of an event is its class, so that what integrations rely on and what is sent cannot part. `--check`
writes nothing and fails when a file is not as it would be written.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from gryvia_common.bus.events import CATALOGUE, DomainEvent
from gryvia_common.bus.streams import EVENTS

_ENVELOPE = tuple(DomainEvent.model_fields)

_HEADERS: dict[str, str] = {
    "ce-id": "Deterministic: the same thing said twice has the same id. Remember it to act once.",
    "ce-type": "`gryvia.<noun>.<verb>`.",
    "ce-source": "`/gryvia/<service>`.",
    "ce-subject": "`<namespace>/<name>` of the object.",
    "ce-time": "When the service saw it happen (RFC 3339).",
    "ce-specversion": "Always `1.0`.",
    "ce-datacontenttype": "Always `application/json`; `content-type` says the same for HTTP-minded readers.",
    "Nats-Msg-Id": "The id again; JetStream drops a repeat within 20 minutes.",
}

_INTRODUCTION = """# Events

Generated from the event classes by `make crds`; do not edit.

Whatever happens on the platform is published on NATS, as a [CloudEvent](https://cloudevents.io) in binary mode: the attributes
are headers, the body is JSON. Subject:

    gryvia.event.<noun>.<verb>.<namespace>.<name>

All of them are kept for seven days in the JetStream stream `{stream}`. A cluster-scoped object has `_` in place of the namespace. In a
name, whatever is not a letter, a digit, `-` or `_` is written as `=` and two hex digits (a dot is `=2E`).

Follow them with `gryvia events`, or from any NATS client: `examples/event-subscriber` is 25 lines to copy. The
machine-readable form is [asyncapi.yaml](asyncapi.yaml).

What to rely on:

- At least once. A repeated event has the same `ce-id`.
- In order for one object, as far as one service emits it; not across services.
- An event may be missed if NATS loses its disk. The objects in the cluster are the truth: an event says when to look.
- Fields are added, never renamed or removed, within an API version. Ignore what you do not know.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("docs", nargs="?", type=Path, default=Path("docs"))
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not up to date")
    arguments = parser.parse_args()
    stale = []
    for name, text in (("events.md", markdown()), ("asyncapi.yaml", asyncapi())):
        path = arguments.docs / name
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path))
        if not arguments.check:
            path.write_text(text)
    if stale and arguments.check:
        print(f"not up to date: {', '.join(stale)}; run python -m gryvia_common.bus.generate", file=sys.stderr)
        return 1
    return 0


def markdown() -> str:
    """The page a person reads."""
    lines = [_INTRODUCTION.format(stream=EVENTS), "## Headers", "", "| Header | Meaning |", "|---|---|"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in _HEADERS.items()]
    lines += ["", "## Fields of every event", "", *_table(DomainEvent, _ENVELOPE)]
    for noun in dict.fromkeys(cls.noun for cls in CATALOGUE):
        classes = [cls for cls in CATALOGUE if cls.noun == noun]
        lines += ["", f"## {noun}", "", _summary(_common_base(classes)), ""]
        if shared := _shared(classes):
            lines += [*_table(classes[0], shared), ""]
        lines += ["| Event | When |", "|---|---|"]
        lines += [f"| `{noun}.{cls.verb}` | {_summary(cls)} |" for cls in classes]
        for cls in classes:
            if own := [name for name in cls.model_fields if name not in (*_ENVELOPE, *shared)]:
                lines += ["", f"### {noun}.{cls.verb}", "", *_table(cls, own)]
    return "\n".join(lines) + "\n"


def asyncapi() -> str:
    """AsyncAPI 3.0."""
    document = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Gryvia events",
            "version": "v1alpha1",
            "description": "CloudEvents 1.0 in binary mode on NATS JetStream. Generated; do not edit.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"nats": {"host": "localhost:4222", "protocol": "nats", "description": f"Stream {EVENTS}."}},
        "channels": {_channel(cls): _channel_object(cls) for cls in CATALOGUE},
        "operations": {f"on-{_channel(cls)}": _operation(cls) for cls in CATALOGUE},
        "components": {
            "messages": {_channel(cls): _message(cls) for cls in CATALOGUE},
            "schemas": {cls.__name__: _schema(cls) for cls in CATALOGUE},
            "messageTraits": {"cloudEvent": {"headers": _header_schema()}},
        },
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _channel_object(cls: type[DomainEvent]) -> dict[str, Any]:
    name = _channel(cls)
    return {
        "address": f"gryvia.event.{cls.noun}.{cls.verb}.{{namespace}}.{{name}}",
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "parameters": {
            "namespace": {"description": "Namespace of the object, `_` for a cluster-scoped one."},
            "name": {"description": "Name of the object, escaped (a dot is `=2E`)."},
        },
    }


def _operation(cls: type[DomainEvent]) -> dict[str, Any]:
    name = _channel(cls)
    return {
        "action": "send",
        "channel": {"$ref": f"#/channels/{name}"},
        "summary": _summary(cls),
        "messages": [{"$ref": f"#/channels/{name}/messages/{name}"}],
    }


def _message(cls: type[DomainEvent]) -> dict[str, Any]:
    return {
        "name": f"gryvia.{cls.noun}.{cls.verb}",
        "summary": _summary(cls),
        "contentType": "application/json",
        "traits": [{"$ref": "#/components/messageTraits/cloudEvent"}],
        "payload": {"$ref": f"#/components/schemas/{cls.__name__}"},
    }


def _header_schema() -> dict[str, Any]:
    properties = {name: {"type": "string", "description": meaning} for name, meaning in _HEADERS.items()}
    return {"type": "object", "properties": properties, "required": list(_HEADERS)}


def _schema(cls: type[DomainEvent]) -> dict[str, Any]:
    schema = cls.model_json_schema(by_alias=True)
    schema["description"] = _summary(cls)
    for field in schema["properties"].values():
        field.pop("title", None)
    return schema


def _channel(cls: type[DomainEvent]) -> str:
    return f"{cls.noun}-{cls.verb}"


def _summary(cls: type[DomainEvent]) -> str:
    return " ".join((cls.__doc__ or "").split())


def _common_base(classes: list[type[DomainEvent]]) -> type[DomainEvent]:
    """The class the events of a noun have in common; its docstring says what holds for all of them."""
    return next(
        base
        for base in classes[0].__mro__
        if issubclass(base, DomainEvent) and all(issubclass(cls, base) for cls in classes)
    )


def _shared(classes: list[type[DomainEvent]]) -> list[str]:
    """Data fields that all classes of a noun have, in the order of the first."""
    return [
        name
        for name in classes[0].model_fields
        if name not in _ENVELOPE and all(name in cls.model_fields for cls in classes)
    ]


def _table(cls: type[DomainEvent], names: list[str] | tuple[str, ...]) -> list[str]:
    properties = cls.model_json_schema(by_alias=True)["properties"]
    rows = ["| Field | Type | Meaning |", "|---|---|---|"]
    for name in names:
        field = cls.model_fields[name]
        alias = field.alias or name
        optional = "" if field.is_required() else "?"
        rows.append(f"| `{alias}`{optional} | {_type(properties[alias])} | {field.description or ''} |")
    return rows


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"] if option.get("type") != "null")
    if schema.get("type") == "object" and "additionalProperties" in schema:
        return f"map of {_type(schema['additionalProperties'])}"
    return str(schema.get("type", "any"))


if __name__ == "__main__":
    sys.exit(main())
