"""What the command line says of registry entries and of a family's history, in words and rows. Pure: objects in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from gryvia_cli.output import age, duration
from gryvia_common.errors import Terminal
from gryvia_common.kinds.conditions import parse_timestamp
from gryvia_common.kinds.families import Family, Term
from gryvia_common.kube.objects import Json, metadata

MODEL_HEADERS = ["NAME", "MODEL", "VERSION", "STAGE", "PHASE", "ALIASES", "GATE", "AGE", "MESSAGE"]
HISTORY_HEADERS = ["ENTRY", "VERSION", "FROM", "TO", "FOR", "BY", "ENDED", "NOTE"]
CAUSES = {"Promoted": "policy", "ByHand": "hand", "RolledBack": "rollback"}
LADDER = ("dev", "staging", "production", "archived")


def model_row(obj: Json, now: datetime) -> list[str]:
    """Under MODEL_HEADERS."""
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    return [
        metadata(obj)["name"],
        str(spec.get("modelName", "")),
        str(spec.get("version", "")),
        stage_of(obj),
        str(state.get("phase") or ""),
        ",".join(state.get("aliases") or []),
        str(state.get("promotionDecision") or ""),
        age(metadata(obj).get("creationTimestamp") or "", now),
        str(state.get("message") or ""),
    ]


def stage_of(obj: Json) -> str:
    return str((obj.get("spec") or {}).get("stage") or "dev")


def check_ladder(obj: Json, target: str) -> None:
    """Terminal unless `target` is the next stage."""
    name, stage = metadata(obj)["name"], stage_of(obj)
    if stage == target:
        raise Terminal(f"model {name} is in stage {stage} already", reason="Conflict")
    following = LADDER[LADDER.index(stage) + 1] if stage in LADDER[:-1] else None
    if following == target:
        return
    ladder = " -> ".join(LADDER)
    if following is None:
        raise Terminal(
            f"model {name} is archived, which is the end of the ladder {ladder}; register its files as a new entry, or set spec.stage",
            reason="Conflict",
        )
    raise Terminal(
        f"model {name} is in stage {stage} and cannot go to {target}: the ladder is {ladder}; "
        f"the next step is `gryvia models promote {name} --to {following}`",
        reason="Conflict",
    )


def model_facts(obj: Json, now: datetime) -> list[tuple[str, str]]:
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    files = spec.get("artifacts") or {}
    where = files.get("s3Path") or f"pvc://{files.get('pvcName')}/{files.get('subPath', '')}"
    facts = [
        ("name", metadata(obj)["name"]),
        ("model", f"{spec.get('modelName')} version {spec.get('version')}"),
        ("stage", stage_of(obj)),
        ("phase", str(state.get("phase") or "not registered yet")),
        ("files", where + (f" ({files['format']})" if files.get("format") else "")),
        ("from", ", ".join(f"{key.removesuffix('Ref')} {value}" for key, value in (spec.get("source") or {}).items())),
        ("description", str(spec.get("description") or "")),
        ("aliases", ", ".join(state.get("aliases") or [])),
        ("before it", str(state.get("previousVersion") or "")),
        ("gate", str(state.get("promotionDecision") or "")),
        ("endpoint", str(state.get("servingEndpoint") or "")),
        ("message", str(state.get("message") or "")),
    ]
    facts += [(f"metadata {key}", value) for key, value in sorted((spec.get("metadata") or {}).items())]
    facts += [
        (one["type"], f"{one['status']} {one['reason']} {one.get('message', '')}".strip())
        for one in state.get("conditions") or []
    ]
    return [(key, value) for key, value in facts if value]


def condition(obj: Json, type: str) -> Json:
    """Empty when it is not there."""
    conditions: Sequence[Json] = (obj.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == type), {})


def history_rows(terms: Sequence[Term], now: datetime) -> list[list[str]]:
    """Under HISTORY_HEADERS, in the order given; times in this machine's zone."""
    return [
        [
            term.entry,
            term.version,
            local(term.start, zone=False),
            local(term.end, zone=False) if term.end else "now",
            _length(term, now),
            CAUSES[term.cause] + (f", {term.approved_by}" if term.approved_by else ""),
            " by ".join(part for part in (term.reason, term.successor) if part),
            term.note,
        ]
        for term in terms
    ]


def term_at(family: Family, moment: datetime) -> Term | None:
    """What was in production then; at the instant of a change the later one."""
    return next(
        (
            term
            for term in family.terms
            if parse_timestamp(term.start) <= moment and (term.end is None or moment < parse_timestamp(term.end))
        ),
        None,
    )


def term_wire(term: Term) -> dict[str, Any]:
    """For programs: times in UTC."""
    return {
        "entry": term.entry,
        "uid": term.uid,
        "version": term.version,
        "startTime": term.start,
        "endTime": term.end,
        "cause": term.cause,
        "note": term.note or None,
        "approvedBy": term.approved_by or None,
        "reason": term.reason or None,
        "successor": term.successor or None,
    }


def parse_moment(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """A date, a date with a time, or RFC 3339; without an offset in this machine's zone (or `zone`). Terminal when it is none of
    them, or lies ahead."""
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise Terminal(
            f"--at {text!r}: write a date, `2026-11-24 12:00` in this machine's time zone, or 2026-11-24T11:00:00Z",
            reason="Usage",
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone else moment.astimezone()
    if moment > now:
        raise Terminal(f"--at {text!r} lies ahead; the history knows what was", reason="Usage")
    return moment


def local(text: str, *, zone: bool = True) -> str:
    """`2026-11-24 12:00:00 CET`."""
    return parse_timestamp(text).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z" if zone else "%Y-%m-%d %H:%M:%S")


def _length(term: Term, now: datetime) -> str:
    end = parse_timestamp(term.end) if term.end else now
    return duration(max(0, int((end - parse_timestamp(term.start)).total_seconds())))
