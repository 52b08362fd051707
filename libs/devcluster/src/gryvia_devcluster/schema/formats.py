"""The string formats that the real API server checks; every other format is ignored, as it does.

Upstream these are the go-openapi formats; quantities are no format but a pattern or CEL's isQuantity.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

_UUID = "^[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}$"
_HEX = "[0-9a-f]"
_LETTER = r"[a-zA-Z0-9\u00a1-\uffff]"
_PATTERNS = {
    "bsonobjectid": "^[0-9a-fA-F]{24}$",
    "hexcolor": "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "hostname": rf"^({_LETTER}((-?{_LETTER}{{0,62}})?)|({_LETTER}([-a-zA-Z0-9\u00a1-\uffff]{{0,61}}{_LETTER})?\.)+"
    r"[a-zA-Z\u00a1-\uffff]{2,63})$",
    "isbn10": "^(?:[0-9]{9}X|[0-9]{10})$",
    "isbn13": "^[0-9]{13}$",
    "k8sshortname": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "mac": "^([0-9a-fA-F]{2}[:-]){5}([0-9a-fA-F]{2}|([0-9a-fA-F]{2}[:-]){2}[0-9a-fA-F]{2})$",
    "rgbcolor": r"^rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)$",
    "ssn": r"^\d{3}[- ]?\d{2}[- ]?\d{4}$",
    "uuid": "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$",
    "uuid3": "(?i)" + _UUID % ("3", _HEX),
    "uuid4": "(?i)" + _UUID % ("4", "[89ab]"),
    "uuid5": "(?i)" + _UUID % ("5", "[89ab]"),
}
_DATE_TIME = re.compile(
    r"^(\d{4}-\d{2}-\d{2})[tT](\d{2}):(\d{2}):(\d{2})(\.\d+)?([zZ]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$", re.ASCII
)
_GO_DURATION = re.compile(r"^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$", re.ASCII)
_WORD_DURATION = re.compile(
    r"^\d+\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hr|hours?|d|days?|w|wks?|weeks?)$",
    re.ASCII,
)
_EMAIL = re.compile(r"^[^@\s<>()\[\],;:\\\"]+@[^@\s<>()\[\],;:\\\"]+$")


def is_date_time(text: str) -> bool:
    matched = _DATE_TIME.match(text)
    if matched is None:
        return False
    day, hour, minute, second = matched.group(1, 2, 3, 4)
    return is_date(day) and int(hour) < 24 and int(minute) < 60 and int(second) < 60


def is_date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text) is not None
    except ValueError:
        return False


def is_duration(text: str) -> bool:
    return bool(_GO_DURATION.match(text) or _WORD_DURATION.match(text))


def is_uri(text: str) -> bool:
    """As net/url.ParseRequestURI: absolute, or a path from the root."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if any(ord(char) < 0x20 or char in " \x7f" for char in text):
        return False
    return bool(parts.scheme) or text.startswith("/")


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return text != ""


def is_address(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def is_long_name(text: str) -> bool:
    label = _matcher(_PATTERNS["k8sshortname"])
    return len(text) <= 253 and all(label(part) for part in text.split("."))


def is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    total = sum(
        int(char) if place % 2 == 0 else sum(divmod(2 * int(char), 10)) for place, char in enumerate(reversed(digits))
    )
    return 12 <= len(digits) <= 19 and total % 10 == 0


def parse_date_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00").replace("t", "T"))


def _matcher(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)
    return lambda text: compiled.match(text) is not None


_CHECKS: dict[str, Callable[[str], bool]] = {
    **{name: _matcher(pattern) for name, pattern in _PATTERNS.items()},
    "byte": is_base64,
    "cidr": is_cidr,
    "creditcard": is_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": lambda text: _EMAIL.match(text) is not None,
    "ipv4": lambda text: is_address(text, 4),
    "ipv6": lambda text: is_address(text, 6),
    "isbn": lambda text: _CHECKS["isbn10"](text) or _CHECKS["isbn13"](text.replace("-", "")),
    "k8slongname": is_long_name,
    "password": lambda text: True,
    "uri": is_uri,
}


def string_format(name: str) -> Callable[[str], bool] | None:
    return _CHECKS.get(name.replace("-", ""))
