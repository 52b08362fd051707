"""The two streams and the two buckets of the leases, and the rule for a stream that is not as it must be.

OBJECTS keeps one message a subject: it is the last known set. Its duplicate window is one second, not minutes:
publishes there are compare-and-set, which already recognises a repeat (the check comes before the dedupe), and a
longer window would drop the very republish that heals a purged stream. EVENTS keeps everything for a week and
recognises a repeated event for twenty minutes. The buckets are KV buckets as any client makes them, so that the usual
tools can read them: MEMBERS has a TTL for all its keys (a TTL a key is lost on renewal), CLAIMS keeps one document a service.

Ensuring is idempotent. What the platform's correctness rests on is put back (and logged); what an operator may choose
(age, replicas, storage, size) is left alone. A stream that cannot be mended is a Terminal error that names the field.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import structlog
from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig

from gryvia_common.bus.jetstream import call, stream_state
from gryvia_common.bus.link import Link
from gryvia_common.bus.settings import BusSettings
from gryvia_common.bus.subjects import EVENTS_WILDCARD, OBJECTS_WILDCARD, SYNC_WILDCARD, escape
from gryvia_common.errors import Gone, Terminal

OBJECTS = "OBJECTS"
EVENTS = "EVENTS"
MEMBERS_BUCKET = "gryvia-members"
CLAIMS_BUCKET = "gryvia-claims"
MEMBERS_STREAM = f"KV_{MEMBERS_BUCKET}"
CLAIMS_STREAM = f"KV_{CLAIMS_BUCKET}"
LEASE_SECONDS = 12.0

_ESSENTIAL = ("subjects", "retention", "discard", "max_msgs_per_subject", "allow_direct", "allow_msg_ttl")
_BUCKET_ESSENTIAL = (*_ESSENTIAL, "max_age", "duplicate_window")

log = structlog.get_logger(__name__)


def objects_config(settings: BusSettings) -> StreamConfig:
    return StreamConfig(
        name=OBJECTS,
        description="Gryvia: the last known state of every object, written by the bridge alone.",
        subjects=[OBJECTS_WILDCARD, SYNC_WILDCARD],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,
        max_msgs_per_subject=1,
        storage=StorageType(settings.storage),
        num_replicas=settings.replicas,
        duplicate_window=1.0,
        allow_direct=True,
        allow_msg_ttl=True,
    )


def events_config(settings: BusSettings) -> StreamConfig:
    return StreamConfig(
        name=EVENTS,
        description="Gryvia: what happened, as CloudEvents.",
        subjects=[EVENTS_WILDCARD],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,
        max_msgs_per_subject=-1,
        max_age=settings.events_max_age.total_seconds(),
        storage=StorageType(settings.storage),
        num_replicas=settings.replicas,
        duplicate_window=min(1200.0, settings.events_max_age.total_seconds()),
        allow_direct=True,
    )


def members_config(settings: BusSettings, lease_seconds: float) -> StreamConfig:
    """`lease_seconds`: how long a heartbeat counts, for every service alike."""
    return _bucket(settings, MEMBERS_BUCKET, lease_seconds)


def claims_config(settings: BusSettings) -> StreamConfig:
    return _bucket(settings, CLAIMS_BUCKET, 0.0)


def members_subject(service: str) -> str:
    """Below it is one key a replica."""
    return f"$KV.{MEMBERS_BUCKET}.{escape(service)}"


def claims_subject(service: str) -> str:
    return f"$KV.{CLAIMS_BUCKET}.{escape(service)}"


async def ensure_stream(link: Link, wanted: StreamConfig) -> None:
    """Creates the stream, or mends what is essential. Raises Terminal when the server refuses."""
    config = {key: value for key, value in wanted.as_dict().items() if value is not None}
    try:
        present = (await stream_state(link, str(wanted.name))).config
    except Gone:
        try:
            await call(link, f"STREAM.CREATE.{wanted.name}", config)
        except Terminal:
            # Several start at once and somebody was faster; the server compares what it made of his request with ours
            # as sent, and calls them different (10058). Look at what is there; a refusal of another kind comes again.
            with contextlib.suppress(Gone):
                await _mend(link, (await stream_state(link, str(wanted.name))).config, config)
                return
            raise
        log.info("bus_stream_created", stream=wanted.name)
        return
    await _mend(link, present, config)


async def _mend(link: Link, present: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    drift = essential_drift(present, config)
    if not drift:
        return
    name = config["name"]
    log.warning("bus_stream_drift", stream=name, fields=drift)
    try:
        await call(link, f"STREAM.UPDATE.{name}", {**present, **{field: config[field] for field in drift}})
    except Terminal as error:
        fields = ", ".join(f"{field} is {was!r} and must be {must!r}" for field, (was, must) in drift.items())
        raise Terminal(
            f"NATS stream {name}: {fields}, and the server refuses the change ({error}); "
            "delete the stream, its content is rebuilt",
            reason="StreamDrift",
        ) from error


def essential_drift(present: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Field to (what it is, what it must be)."""
    essential = _BUCKET_ESSENTIAL if str(wanted["name"]).startswith("KV_") else _ESSENTIAL
    return {
        field: (present.get(field), wanted[field])
        for field in essential
        if field in wanted and present.get(field) != wanted[field]
    }


def _bucket(settings: BusSettings, name: str, ttl: float) -> StreamConfig:
    return StreamConfig(
        name=f"KV_{name}",
        description="Gryvia: which replica works on which partition.",
        subjects=[f"$KV.{name}.>"],
        max_msgs_per_subject=1,
        max_age=ttl,
        discard=DiscardPolicy.NEW,
        storage=StorageType(settings.storage),
        num_replicas=settings.replicas,
        duplicate_window=ttl or 120.0,
        allow_rollup_hdrs=True,
        deny_delete=True,
        allow_direct=True,
    )
