"""What an applied configuration claims to own, and the configurations that cannot be understood as claims.

A claim is on leaves, list items, keys of maps and empty maps, never on a struct by itself. Items without a key and keys
that occur twice are refused, in the words of the typed parser of the real server.
"""

from __future__ import annotations

import json
from typing import Any

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch.compare import is_container
from gryvia_devcluster.patch.fieldset import MEMBER, FieldSet
from gryvia_devcluster.patch.topology import Node, Shape, item_key


class MalformedClaim(Exception):
    """The text starts with the path, `.spec.ports: ...`; it is put together only on the way out of the recursion."""


def undeclared(paths: list[str]) -> MalformedClaim:
    """Fields that the type does not have, as `spec.a`: nobody can own them."""
    texts = [f".{path}: field not declared in schema" for path in paths]
    return MalformedClaim(texts[0] if len(texts) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in texts))


def claims(node: Node, config: Any) -> FieldSet:
    """The root set of a configuration. Raises MalformedClaim."""
    if node.shape is Shape.MAP:
        return _of_map(node, config)
    out: FieldSet = {}
    elem = node.elem
    assert elem is not None
    for index, item in enumerate(config):
        path = item_key(node, item)
        if path is None:
            raise MalformedClaim(f": element {index}: {_why_no_key(node, item)}")
        if path in out:
            raise MalformedClaim(f": duplicate entries for key {element_text(path)}")
        try:
            below = claims(elem, item) if item and is_container(elem, item) else None
        except MalformedClaim as failed:
            raise MalformedClaim(f"{element_text(path)}{failed}") from failed
        out[path] = {MEMBER: {}, **below} if below else {}
    return out


def _of_map(node: Node, config: dict[str, Any]) -> FieldSet:
    out: FieldSet = {}
    for key, value in config.items():
        if not isinstance(value, dict | list) or value == {}:
            out["f:" + key] = {}
            continue
        child = node.child(key)
        if not is_container(child, value):
            out["f:" + key] = {}
            continue
        try:
            below = claims(child, value)
        except MalformedClaim as failed:
            raise MalformedClaim(f".{key}{failed}") from failed
        if not node.named(key):
            out["f:" + key] = {MEMBER: {}, **below} if below else {}
        elif below:
            out["f:" + key] = below
    return out


def refused(failed: MalformedClaim, config: Any) -> ApiError:
    metadata = config.get("metadata") or {}
    group, slash, version = str(config.get("apiVersion", "")).rpartition("/")
    kind = f"{group}{slash or '/'}{version}, Kind={config.get('kind', '')}"
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return ApiError("", f"failed to create typed patch object ({name}; {kind}): {failed}")


def _why_no_key(node: Node, item: Any) -> str:
    if node.shape is Shape.SET:
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        kind = "a map type" if isinstance(item, dict) else "an explicit null"
        return f"associative list without keys has an element that's {kind}"
    if isinstance(item, dict):
        names = " ".join(json.dumps(key) for key in node.keys)
        return (
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"associative list with keys may not have {'a null element' if item is None else 'non-map elements'}"


def element_text(path: str) -> str:
    """A path element as the real server prints it: `.name`, `[name="a",port=80]` or `[="x"]`."""
    if path.startswith("f:"):
        return "." + path[2:]
    if path.startswith("v:"):
        return f"[={path[2:]}]"
    pairs = json.loads(path[2:])
    return "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in pairs.items()) + "]"
