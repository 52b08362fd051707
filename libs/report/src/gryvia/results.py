"""What a step of a workflow hands on to later steps: the JSON object in the pod's termination message.

`outputs` adds to what is there, of this process and of others in the container, and leaves the file whole at every instant: the
new object goes out in one write at the beginning of the file, padded to the length of the old one, and only then is the rest cut
off. (A new file moved over the old one was rejected: the kubelet mounts the file itself, and nothing can be moved over a mount.)

Unlike a metric, an output that is lost fails the step that reads it, later and elsewhere. So what cannot be handed on raises a
ValueError here, where the stack shows the line that gave it, and nothing of that call is written.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

PREFIX = "gryvia-outputs "
FILE_VARIABLE = "GRYVIA_TERMINATION_LOG"
KUBERNETES_FILE = "/dev/termination-log"
LIMIT = 4096
"""Bytes: of a termination message the kubelet keeps no more, and half an object is none."""
MOST = 32

_KEY = re.compile(r"[A-Za-z0-9_-]{1,63}")
_lock = threading.Lock()


def outputs(values: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """Hand values on to later steps, where `{{steps.<step>.outputs.<key>}}` is their text.

    Values are text, numbers (of numpy and torch too), bool, paths; a list or a mapping becomes JSON, as `withItems` takes it.
    Names that are no Python identifiers go into the mapping: outputs({"val-accuracy": 0.9}). Where there is no termination
    message (outside of Gryvia) the values are only printed.

    ValueError for a key that is none, a value without a text (NaN, infinities, None), more than 32 outputs, or more than 4,096 bytes
    of them; OSError when the file cannot be written. Nothing of the call is written then.
    """
    given = {_key(name): _text(name, value) for name, value in {**(values or {}), **more}.items()}
    with _lock:
        file = os.environ.get(FILE_VARIABLE) or KUBERNETES_FILE
        if os.environ.get(FILE_VARIABLE) or os.path.exists(file):
            _merge(file, given)
        else:
            _encoded(given, given)
    with suppress(Exception):  # the line is for people; a closed standard output loses no output
        stream = sys.__stdout__ or sys.stdout
        stream.write(f"{PREFIX}{json.dumps(given)}\n")
        stream.flush()


def _merge(file: str, given: Mapping[str, str]) -> None:
    """Under a lock on the file: the processes of a container share it."""
    import fcntl  # not on Windows, where there is no termination message either

    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        before = os.pread(descriptor, LIMIT + 1, 0)
        content = _encoded({**_outputs_in(before), **given}, given)
        os.pwrite(descriptor, content.ljust(len(before)), 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


def _outputs_in(content: bytes) -> dict[str, Any]:
    """What is no JSON object is somebody's last words, not outputs, and gives way."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _encoded(together: Mapping[str, Any], given: Iterable[str]) -> bytes:
    """ValueError names what is too large, or too many."""
    if len(together) > MOST:
        raise ValueError(
            f"outputs: {len(together)} with {_named(given)}, at most {MOST} are handed on; give several values as one list"
        )
    content = json.dumps(together, ensure_ascii=False, separators=(",", ":")).encode()
    if len(content) > LIMIT:
        largest = max(together, key=lambda name: len(json.dumps(together[name], ensure_ascii=False).encode()))
        size = len(str(together[largest]).encode())
        raise ValueError(
            f"outputs: {len(content)} bytes with {_named(given)}, at most {LIMIT} are handed on; the largest is "
            f"{largest} with {size} bytes: write it to a volume and hand on its path"
        )
    return content


def _named(given: Iterable[str]) -> str:
    names = sorted(given)
    return ", ".join(names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"])


def _key(name: object) -> str:
    if not isinstance(name, str) or _KEY.fullmatch(name) is None:
        raise ValueError(f"outputs: {name!r} is no key: write 1 to 63 letters, digits, _ or -")
    return name


def _text(name: str, value: Any) -> str:
    """As the later step sees it: `true`, `3`, `0.25`, a text as it is, JSON for a list or a mapping."""
    value = _plain(name, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"outputs: {name} is no text that UTF-8 can hold: {error.reason}") from error
        return value
    if isinstance(value, list | tuple | Mapping):
        try:
            return json.dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"outputs: {name} is no JSON: {error}") from error
    if isinstance(value, int):
        return str(int(value))
    try:
        number = float(value)
    except Exception as error:  # any object may be given, and any of them may raise anything
        raise ValueError(
            f"outputs: {name} is {'None' if value is None else f'a {type(value).__name__}'}, which has no text; "
            "give a text, a number, a bool, a list or a mapping"
        ) from error
    if not math.isfinite(number):
        shown = "NaN" if math.isnan(number) else f"{number}"
        raise ValueError(f"outputs: {name} is {shown}, which no later step could compare; leave it out or give a text")
    return repr(number) if isinstance(value, float) else str(value)


def _plain(name: str, value: Any) -> Any:
    """The Python value in a numpy or torch one, and the text of a path."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    whole = getattr(value, "tolist", None)
    if whole is None or isinstance(value, str | int | float):
        return value
    try:
        return whole()
    except Exception as error:  # as above
        raise ValueError(f"outputs: {name} is a {type(value).__name__} without a plain value: {error}") from error
