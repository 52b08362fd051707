"""What Go's encoding/json says about a text that is no JSON: clients show these words, so a refusal has to have them.

The text is known to be broken (orjson has refused it); Python's decoder says where, and what stands there says what Go would say.
"""

from __future__ import annotations

import json

_END = "unexpected end of JSON input"


def syntax_error(raw: bytes) -> str:
    """ "" for JSON."""
    text = raw.decode("latin-1")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return _told(text, error)
    except RecursionError:
        return "exceeded max depth"
    return ""


def _told(text: str, error: json.JSONDecodeError) -> str:
    place = error.pos
    while place < len(text) and text[place] in " \t\r\n":
        place += 1
    if place >= len(text) or error.msg.startswith("Unterminated string"):
        return _END
    return f"invalid character '{_quoted(text[place])}' {_where(text, error)}"


def _where(text: str, error: json.JSONDecodeError) -> str:
    match error.msg.split():
        case ["Extra", *_]:
            return "after top-level value"
        case ["Expecting", "property", *_]:
            return "looking for beginning of object key string"
        case ["Expecting", "':'", *_]:
            return "after object key"
        case ["Expecting", "','", *_]:
            return "after object key:value pair" if _in_object(text[: error.pos]) else "after array element"
        case ["Invalid", "control", *_]:
            return "in string literal"
        case ["Invalid", *_]:
            return "in string escape code"
        case _:
            return "looking for beginning of value"


def _in_object(before: str) -> bool:
    """Whether the innermost bracket that is open is that of an object."""
    opened, within, escaped = [], False, False
    for letter in before:
        if within:
            within, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            within = True
        elif letter in "{[":
            opened.append(letter)
        elif letter in "}]" and opened:
            opened.pop()
    return bool(opened) and opened[-1] == "{"


def _quoted(letter: str) -> str:
    """A byte as Go quotes it: what is printable as it is."""
    if letter in "'\\":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = f"\\u{ord(letter):04x}" if ord(letter) > 127 else f"\\x{ord(letter):02x}"
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(letter, code)
