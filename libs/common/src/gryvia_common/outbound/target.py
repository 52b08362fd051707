"""A URL that a user wrote, checked before anything is sent: scheme, host, port, and no credentials.

What is shown of it in messages and logs is its origin alone: paths and queries of webhooks are often secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from yarl import URL

from gryvia_common.errors import Terminal
from gryvia_common.outbound.addresses import literal

LONGEST_URL = 8192
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_.])?", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OURS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)


def parse_target(text: str) -> URL:
    """The URL with its host in one form (an address as an address). Raises Terminal with what to change."""
    if len(text) > LONGEST_URL:
        raise Terminal(f"the URL has {len(text)} characters, at most {LONGEST_URL} are allowed")
    if re.search(r"[\x00-\x20\x7f\\]", text):
        raise Terminal("the URL has a space, a backslash or a control character; write it percent-encoded")
    try:
        url = URL(text)
        host, port = url.raw_host, url.port
    except ValueError as error:
        raise Terminal("the URL cannot be read; use the form https://host/path") from error
    if url.scheme not in ("http", "https"):
        raise Terminal(f"the URL begins with {url.scheme[:20]!r}; use http or https")
    if not host or not port:
        raise Terminal("the URL has no host, or port 0; use the form https://host/path")
    if url.raw_user is not None or url.raw_password is not None:
        raise Terminal(f"the URL has a user or password ({shown(url)}); put them into a header instead")
    address = literal(host)
    if address is not None:
        return url.with_host(str(address)).with_fragment(None)
    if _HOST.fullmatch(host) is None or ".." in host:
        raise Terminal(f"host {host[:80]!r} is not a host name")
    return url.with_fragment(None)


def shown(url: URL) -> str:
    """Scheme, host and port."""
    try:
        host = f"[{url.raw_host}]" if ":" in (url.raw_host or "") else url.raw_host or ""
        port = "" if url.is_default_port() or url.port is None else f":{url.port}"
    except ValueError:
        return "the URL"
    return f"{url.scheme}://{host[:253]}{port}"


def header_problems(headers: Mapping[str, str]) -> Iterable[str]:
    """What cannot be sent, by the header's name; values are never shown."""
    for name, value in headers.items():
        if _TOKEN.fullmatch(name) is None:
            yield f"header {name[:80]!r} is not a name for a header"
        elif name.lower() in _OURS or name.lower().startswith("proxy-"):
            yield f"header {name!r} follows from the call itself; remove it"
        elif _CONTROL.search(value):
            yield f"header {name!r} has a line break or another control character in its value"
