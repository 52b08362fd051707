"""What a controller's sync may ask for, as data.

A sync function reads nothing but its arguments and returns a sequence of these; the shell carries them out in order and
stops at the first refusal, so a status that counts something can be placed before the write that makes it uncountable.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gryvia_devcluster.types import Json


@dataclass(frozen=True, slots=True)
class Create:
    """A new object, with apiVersion and kind. `generateName` is resolved by the API. `about` gets the event."""

    obj: Json
    about: Json | None = None


@dataclass(frozen=True, slots=True)
class Replace:
    """An update that carries the resourceVersion it was decided on: a newer one in the store refuses it."""

    obj: Json
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge patch of one object, refused when that name now belongs to another uid."""

    obj: Json
    body: Json
    subresource: Literal["", "status"] = ""


@dataclass(frozen=True, slots=True)
class Remove:
    obj: Json
    propagation: Literal["Background", "Foreground", "Orphan"] = "Background"
    about: Json | None = None


@dataclass(frozen=True, slots=True)
class Emit:
    obj: Json
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Again:
    """Sync the same object at this time even if nothing changes before."""

    at: datetime


Action = Create | Replace | Merge | Remove | Emit | Again
