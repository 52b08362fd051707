"""The reference page of a kind (docs/kinds/), from the same Kind value as its CRD.

A part that is documented elsewhere (a job template, a core/v1 fragment) is one row with a link, not its whole tree again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gryvia_common.kinds.kind import Entries, Kind
from gryvia_common.kinds.schema import DEFAULT, INT_OR_STRING, PRESERVE, SEE, annotated
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import GROUP, VERSION

NOTICE = "<!-- Generated from the kinds' source by `make crds`. Edit the source, not this page. -->"
_ENUM_LIMIT = 12


def page(kind: Kind[Any, Any]) -> str:
    """The page as Markdown."""
    parts = [NOTICE, f"# {kind.name}", kind.summary, _facts(kind)]
    reference = kind.reference
    if reference:
        parts += ["## Example", f"```yaml\n{reference.example.strip()}\n```"]
    parts += ["## Spec", _fields(annotated(kind.spec), "spec")]
    if kind.status_subresource:
        parts += ["## Status", _fields(annotated(kind.status), "status")]
    if reference:
        for title, entries, prefix in (
            ("Conditions", reference.conditions, ""),
            ("Child objects", reference.children, None),
            ("Labels", reference.labels, f"{GROUP}/"),
            ("Annotations", reference.annotations, f"{GROUP}/"),
        ):
            parts += _section(title, entries, prefix)
        if reference.notes:
            parts += ["## Notes", "\n".join(f"- {_plain(note)}" for note in reference.notes)]
    return "\n\n".join(parts) + "\n"


def index(kinds: Sequence[Kind[Any, Any]]) -> str:
    """The list of all pages."""
    rows = [[f"[{kind.name}]({page_name(kind)})", _scope(kind), kind.summary] for kind in kinds]
    return "\n\n".join([NOTICE, "# Kinds", _table(["Kind", "Scope", "What it is"], rows)]) + "\n"


def page_name(kind: Kind[Any, Any]) -> str:
    return f"{kind.name.lower()}.md"


def _scope(kind: Kind[Any, Any]) -> str:
    return "Namespaced" if kind.namespaced else "Cluster"


def _facts(kind: Kind[Any, Any]) -> str:
    rows = [
        ["API", f"`{GROUP}/{VERSION}`, `{kind.plural}`"],
        ["Scope", _scope(kind)],
        ["Short names", ", ".join(f"`{name}`" for name in kind.short_names) or "none"],
        ["Columns", ", ".join(f"{column.name} (`{column.path}`)" for column in kind.columns) or "none"],
    ]
    if kind.scale:
        rows.append(["Scale", f"`{kind.scale.spec_replicas}`, `kubectl scale` works"])
    return _table(["", ""], rows)


def _section(title: str, entries: Entries, prefix: str | None) -> list[str]:
    """A list of names; a prefix None means that the name is text, not a key."""
    if not entries:
        return []
    lines = [f"- {name if prefix is None else _keys(name, prefix)}: {meaning}" for name, meaning in entries]
    return [f"## {title}", "\n".join(lines)]


def _keys(names: str, prefix: str) -> str:
    return ", ".join(f"`{prefix}{name}`" for name in names.split(", "))


def _fields(schema: Json, root: str) -> str:
    rows = [
        [f"`{path}`", _type(node), "yes" if required else "", _default(node), _allowed(node), _meaning(node)]
        for path, node, required in _walk(schema, root)
    ]
    return _table(["Field", "Type", "Required", "Default", "Allowed", "Meaning"], rows)


def _walk(node: Json, path: str) -> Iterator[tuple[str, Json, bool]]:
    """Every field below the node with its path, in the order of the source."""
    for name, part in (node.get("properties") or {}).items():
        here = f"{path}.{name}"
        yield here, part, name in node.get("required", ())
        inner = part
        while "items" in inner:
            inner, here = inner["items"], f"{here}[]"
        if SEE not in inner:
            yield from _walk(inner, here)


def _type(node: Json) -> str:
    if node.get(INT_OR_STRING):
        return "quantity"
    if "items" in node:
        return f"[]{_type(node['items'])}"
    if "additionalProperties" in node:
        return f"map[string]{_type(node['additionalProperties'])}"
    if SEE in node and not node[SEE].startswith("core/"):
        return f"[{node[SEE]}]({node[SEE].lower()}.md) spec"
    if SEE in node:
        return str(node[SEE])
    if node.get("format") == "date-time":
        return "time"
    return str(node.get("format") or node.get("type") or "any")


def _default(node: Json) -> str:
    """The default; in bold when the API server stores it, plain when the service assumes it."""
    value = node.get("default")
    if value is None or value == "" or isinstance(value, dict):
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"**{text}**" if node.get(DEFAULT) else text


def _allowed(node: Json) -> str:
    """What the API server checks."""
    parts = []
    inner = node.get("items", node)
    if "enum" in inner and len(inner["enum"]) <= _ENUM_LIMIT:
        parts.append(", ".join(inner["enum"]))
    if "minimum" in node or "maximum" in node:
        parts.append(f"{node.get('minimum', '')}..{node.get('maximum', '')}")
    if node.get("minItems") or node.get("minLength"):
        parts.append("not empty")
    if "maxItems" in node:
        parts.append(f"at most {node['maxItems']}")
    if "pattern" in node and not node.get(INT_OR_STRING):
        parts.append(f"`{node['pattern']}`")
    parts += [rule["message"] for rule in node.get("x-kubernetes-validations", ())]
    return "; ".join(parts)


def _meaning(node: Json) -> str:
    """The description; a default that stands in its own column is not said twice."""
    free = " Free form." if node.get(PRESERVE) and node.get("type") == "object" else ""
    default = _default(node).strip("*")
    text = str(node.get("description", ""))
    return _plain(text.removesuffix(f" Default {default}.") if default else text) + free


def _plain(text: str) -> str:
    """Markdown in which <name> outside of code is no HTML tag."""
    parts = text.split("`")
    return "`".join(part.replace("<", "&lt;") if number % 2 == 0 else part for number, part in enumerate(parts))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(head), "|" + " --- |" * len(head), *(line(row) for row in rows)])
