"""Conversations with an API server, recorded from a real one and held against whoever answers: the strictest comparison there is.

A `Conversation` keeps every request and the whole answer. What differs from run to run is replaced by what stays the same:
uids and resource versions by their order, times, tokens and the namespace by a word. So a recording says which write made a
new version and which did not, and everything else to the letter. With GRYVIA_RECORD=1 the answers of the real server are
written to the file; without, any difference is an error that shows it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.realcluster.http import Answer, Http

Json = dict[str, Any]

_ABSENT: Any = object()
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"(\d+[smhdy])+")
_ACCESS = re.compile(r"kube-api-access-\w{5}")
_RECORD = re.compile(r"in record \(\d+\)")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def recording() -> bool:
    """GRYVIA_RECORD=1 writes the real server's answers down."""
    return os.environ.get("GRYVIA_RECORD") == "1"


class Conversation:
    """`await talk("POST", path, body)`: the path's and the body's `{ns}` is the test's namespace."""

    def __init__(self, api: Http, namespace: str) -> None:
        self.namespace = namespace
        self.api = api
        self._turns: list[Json] = []

    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        sent = json.loads(json.dumps(body).replace("{ns}", self.namespace)) if isinstance(body, dict | list) else body
        answer = await self.api(method, path.replace("{ns}", self.namespace), sent, **options)
        turn: Json = {"request": f"{method} {path}", "code": answer.code, "body": answer.body}
        if answer.warnings:
            turn["warnings"] = list(answer.warnings)
        self._turns.append(turn)
        return answer

    def say(self, request: str, body: Any) -> None:
        """Add what was seen by other means, such as the events of a watch."""
        self._turns.append({"request": request, "body": body})

    def turns(self) -> list[Json]:
        turns: list[Json] = normalized(self._turns, self.namespace)
        return turns


def compare(turns: list[Json], file: Path, *, real: bool, known: frozenset[str] = frozenset()) -> None:
    """AssertionError with every difference that is not `known`, and with every known one that is none any more: a list of
    what is wrong must not outlive it. When recording, the real server's turns become the file."""
    if recording() and real:
        file.parent.mkdir(parents=True, exist_ok=True)
        # One turn a line: a change of the server's is read line by line.
        file.write_text("[\n" + ",\n".join(json.dumps(turn, sort_keys=True) for turn in turns) + "\n]\n")
        return
    assert file.exists(), f"{file.name} has not been recorded: run GRYVIA_RECORD=1 make test-kube"
    found = differences(json.loads(file.read_text()), turns)
    # A real server has no excuse.
    excused = frozenset() if real else known
    told = [f"{place}\n  recorded: {a}\n  answered: {b}" for place, (a, b) in found.items() if place not in excused]
    told += [f"{place}\n  is listed as a known difference and is none" for place in excused - found.keys()]
    assert not told, f"{file.name}\n" + "\n".join(told)


def differences(recorded: list[Json], answered: list[Json]) -> dict[str, tuple[str, str]]:
    """Place, as `<number of the turn> <request> <field>`, to what stands there in each."""
    found: dict[str, tuple[str, str]] = {}
    for number, turn in enumerate(recorded):
        other = answered[number] if number < len(answered) else {}
        pairs = _refusals(turn, other) or dict(_differ(turn, other, ""))
        found |= {f"{number} {turn['request']} {path}": pair for path, pair in pairs.items()}
    for number in range(len(recorded), len(answered)):
        found[f"{number} {answered[number]['request']}"] = ("nothing", _short(answered[number]))
    return found


def _refusals(a: Json, b: Json) -> dict[str, tuple[str, str]]:
    """Where one refuses and the other does not, or in other words, the details say nothing more."""
    if a.get("code") != b.get("code"):
        return {".code": (_outcome(a), _outcome(b))}
    one, other = a.get("body"), b.get("body")
    if not isinstance(one, dict) or not isinstance(other, dict) or one.get("kind") != "Status":
        return {}
    if one.get("message") != other.get("message"):
        return {".message": (_short(one.get("message")), _short(other.get("message")))}
    return {}


def _outcome(turn: Json) -> str:
    body = turn.get("body")
    message = body.get("message") if isinstance(body, dict) else body
    return f"{turn.get('code', 'nothing')} {_short(message or '')}"


def _differ(a: Any, b: Any, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            yield from _differ(a.get(key, _ABSENT), b.get(key, _ABSENT), f"{path}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _differ(one, other, f"{path}[{index}]")
    elif a != b or type(a) is not type(b):
        yield path, (_short(a), _short(b))


def _short(value: Any) -> str:
    text = "nothing" if value is _ABSENT else json.dumps(value)
    return text if len(text) < 400 else f"{text[:400]}..."


def normalized(value: Any, namespace: str) -> Any:
    versions = sorted(_versions(value), key=int)
    text = json.dumps(_walk(value, {version: f"version {rank}" for rank, version in enumerate(versions)}))
    text = text.replace(namespace, "NS")
    text = _RECORD.sub("in record (VERSION)", text)
    text = _ACCESS.sub("kube-api-access-NAME", _TIME.sub("TIME", text))
    uids: dict[str, str] = {}
    text = _UID.sub(lambda found: uids.setdefault(found[0], f"uid {len(uids)}"), text)
    return json.loads(text)


def _is_list(node: Json) -> bool:
    return "items" in node or str(node.get("kind", "")).endswith("List") or node.get("kind") == "Table"


def _versions(node: Any) -> set[str]:
    """Of objects; a list's own depends on what else happens in the cluster."""
    found: set[str] = set()
    if isinstance(node, dict):
        version = node.get("resourceVersion")
        if isinstance(version, str) and version.isdecimal():
            found.add(version)
        for key, part in node.items():
            if key == "metadata" and _is_list(node):
                continue
            found |= _versions(part)
    elif isinstance(node, list):
        for part in node:
            found |= _versions(part)
    return found


def _walk(node: Any, ranks: dict[str, str]) -> Any:
    if isinstance(node, list):
        return [_walk(part, ranks) for part in node]
    if not isinstance(node, dict):
        return node
    walked: Json = {}
    if node.get("kind") == "Status" and len((node.get("details") or {}).get("causes") or ()) > 1:
        node = _in_order(node)
    for key, part in node.items():
        if key == "metadata" and _is_list(node) and isinstance(part, dict):
            walked[key] = {
                name: "TOKEN" if name == "continue" and value else "VERSION" if name == "resourceVersion" else value
                for name, value in part.items()
                if (name, value) != ("continue", "")  # of a custom type's list, and of no other
            }
        elif key == "managedFields" and isinstance(part, list):
            # Their order goes by the second of their last change, and whether there is one by what came within it.
            entries = [{k: v for k, v in entry.items() if k != "time"} for entry in _walk(part, ranks)]
            walked[key] = sorted(entries, key=_manager)
        elif key == "cells":
            walked[key] = ["AGE" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell for cell in part]
        elif key == "resourceVersion" and isinstance(part, str):
            walked[key] = ranks.get(part, part)
        else:
            walked[key] = _walk(part, ranks)
    return walked


def _manager(entry: Any) -> str:
    return json.dumps([entry.get(key, "") for key in ("manager", "operation", "subresource", "apiVersion")])


def _in_order(status: Json) -> Json:
    """Several causes come in the order of a Go map, which is none; the message repeats them."""
    causes = sorted(status["details"]["causes"], key=lambda cause: json.dumps(cause, sort_keys=True))
    message, invalid, _ = status["message"].partition(" is invalid: ")
    return {
        **status,
        "message": message + invalid or status["message"],
        "details": {**status["details"], "causes": causes},
    }
