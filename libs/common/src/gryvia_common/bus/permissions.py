"""What each process may say and hear on NATS, derived from what the modules of this package send.

Invariant: only the bridge says what an object is (`gryvia.object.>`, `gryvia.sync.>`), and only it makes streams; a service says
its own events and keeps its own leases; nobody hears another's answers (each user has an inbox prefix of its own). Making
streams is the bridge's alone because a stream may copy what it gets to any subject, past all permissions.

Not expressible in NATS, so not claimed: which object types a consumer reads (its filters are in the request's body), and whose
consumer a request is about (the name is one token; ours are random and nobody may list them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from gryvia_common.bus.settings import inbox_of
from gryvia_common.bus.streams import CLAIMS_STREAM, EVENTS, MEMBERS_STREAM, OBJECTS, claims_subject, members_subject
from gryvia_common.bus.subjects import OBJECTS_WILDCARD, SYNC_WILDCARD, events_filter, poke_subject

ADMIN = "admin"
READER = "reader"

_API = "$JS.API"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Subjects with wildcards. Whatever is not named is refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def bridge_permissions(user: str) -> Permissions:
    """Writes OBJECTS and reads it back; makes, mends and removes streams."""
    streams = (OBJECTS, EVENTS, MEMBERS_STREAM, CLAIMS_STREAM)
    return Permissions(
        publish=(
            OBJECTS_WILDCARD,
            SYNC_WILDCARD,
            *(f"{_API}.STREAM.{verb}.{stream}" for stream in streams for verb in ("INFO", "CREATE", "UPDATE")),
            *(f"{_API}.STREAM.{verb}.{OBJECTS}" for verb in ("PURGE", "DELETE", "MSG.GET")),
            *_consumer(OBJECTS),
        ),
        subscribe=(f"{inbox_of(user)}.>",),
    )


def service_permissions(user: str, emits: Iterable[str]) -> Permissions:
    """A service made of controllers. `emits`: the nouns of its events."""
    return Permissions(
        publish=(
            *(events_filter(noun) for noun in emits),
            poke_subject(user),
            f"{members_subject(user)}.>",
            claims_subject(user),
            *(f"{_API}.STREAM.INFO.{stream}" for stream in (OBJECTS, MEMBERS_STREAM, CLAIMS_STREAM)),
            *(f"{_API}.STREAM.MSG.GET.{stream}" for stream in (OBJECTS, CLAIMS_STREAM)),
            *_consumer(OBJECTS),
        ),
        subscribe=(f"{inbox_of(user)}.>", poke_subject(user)),
    )


def reader_permissions(user: str = READER) -> Permissions:
    """Reads events and nothing else: `gryvia events`, and integrations with a consumer that the server remembers."""
    return Permissions(
        publish=(
            f"{_API}.STREAM.INFO.{EVENTS}",
            f"{_API}.CONSUMER.CREATE.{EVENTS}.>",
            *(f"{_API}.CONSUMER.{verb}.{EVENTS}.*" for verb in ("INFO", "MSG.NEXT", "DELETE")),
            f"$JS.ACK.{EVENTS}.>",
        ),
        subscribe=(f"{inbox_of(user)}.>",),
    )


def authorization(users: Mapping[str, Permissions | None], password: Callable[[str], str]) -> str:
    """The `authorization` block of a nats-server configuration. None: the user may do everything. `password` answers what stands
    in the file, a quoted string or a variable."""
    lines = ["authorization {", "  users: ["]
    for user, permissions in users.items():
        head = f'user: "{user}", password: {password(user)}'
        if permissions is None:
            lines.append(f"    {{ {head} }}")
        else:
            lines += [f"    {{ {head}, permissions: {{", *_block(permissions, "      "), "    } }"]
    return "\n".join([*lines, "  ]", "}", ""])


def permissions_block(permissions: Permissions) -> str:
    """The map alone, for a configuration that names it more than once."""
    return "\n".join(["{", *_block(permissions, "  "), "}"])


def _block(permissions: Permissions, indent: str) -> list[str]:
    lines = []
    for name, subjects in (("publish", permissions.publish), ("subscribe", permissions.subscribe)):
        lines += [f"{indent}{name}: [", *(f'{indent}  "{subject}"' for subject in subjects), f"{indent}]"]
    return lines


def _consumer(stream: str) -> tuple[str, ...]:
    return tuple(f"{_API}.CONSUMER.{verb}.{stream}.*" for verb in ("CREATE", "MSG.NEXT", "DELETE"))
