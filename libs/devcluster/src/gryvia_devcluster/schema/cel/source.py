"""What has to be done to an expression's text before a dynamically typed engine can compile it as the real server
would.

The real server declares every object type of a schema to CEL. Here objects are maps, and three things are made up for,
on field paths that start at `self` or `oldSelf`: a field that the schema does not know is refused, a date-time or
duration is read as such, and an `oldSelf` that is optional becomes a CEL optional. Variables of `all` and `exists` are
not followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gryvia_devcluster.schema.cel.engine import OLD_VALUES, CompileError
from gryvia_devcluster.schema.node import Node

TOKENS = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:\"\"\".*?\"\"\"|'''.*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))"""
    r"""|(?P<comment>//[^\n]*)"""
    r"""|(?<![\w.])(?P<root>self|oldSelf)\b(?P<path>(?:\s*\.\s*\??\s*[A-Za-z_]\w*(?!\w*\s*\())*)""",
    re.DOTALL,
)
INSIDE_HAS = re.compile(r"\bhas\s*\(\s*$")
_KEYWORDS = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import")
    + ("let", "loop", "package", "namespace", "return", "var", "void", "while")
)
_TEMPORAL = {"date": "timestamp({} + 'T00:00:00Z')", "datetime": "timestamp({})", "duration": "duration({})"}


@dataclass(frozen=True, slots=True)
class Source:
    text: str
    uses_old: bool


def escape(name: str) -> str | None:
    """A property's name in CEL, None where it cannot be one."""
    if name in _KEYWORDS:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", name):
        return None
    for plain, escaped in (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        name = name.replace(plain, escaped)
    return name


def prepare(expression: str, node: Node, *, optional_old: bool) -> Source:
    """Raises CompileError for a field that the schema of `self` does not have."""
    out: list[str] = []
    position, uses_old = 0, False
    for token in TOKENS.finditer(expression):
        root = token["root"]
        if root is None:
            continue
        out.append(expression[position : token.start()])
        position = token.end()
        uses_old = uses_old or root == "oldSelf"
        if root == "oldSelf" and optional_old:
            out.append(f"{OLD_VALUES}[?0]{token['path']}")
        else:
            inside_has = INSIDE_HAS.search("".join(out)) is not None
            out.append(_path(expression, token, node, inside_has))
    out.append(expression[position:])
    return Source("".join(out), uses_old)


def _path(expression: str, token: re.Match[str], node: Node, inside_has: bool) -> str:
    text, current, offset = token["root"], node, token.end("root")
    wrapped = _read(current, text) if not inside_has else text
    for part in re.finditer(r"(\s*\.\s*\??\s*)(\w+)", token["path"]):
        following = step(current, part[2], is_root=current is node)
        if following is None:
            place = expression.rindex("(", 0, token.start()) if inside_has else offset + part.start()
            raise CompileError(error_at(expression, place, f"undefined field '{part[2]}'"))
        current = following
        wrapped = text = wrapped + part[0]
        if not inside_has:
            wrapped = _read(current, text)
    return wrapped


_ANY = Node(raw={}, preserve=True)
_METADATA = Node(raw={}, types=("object",), properties={"name": _ANY, "generateName": _ANY})


def step(node: Node, name: str, *, is_root: bool) -> Node | None:
    """The node of a field, None where the schema has none. Of metadata only the names can be seen."""
    if node.embedded and name == "metadata":
        return _METADATA
    for key, child in node.properties.items():
        if escape(key) == name:
            return child
    if isinstance(node.additional, Node):
        return node.additional
    if node.embedded and name in ("apiVersion", "kind"):
        return _ANY
    declared = bool(node.properties) or (is_root and node.types == ("object",))
    return None if declared else _ANY


def _read(node: Node, text: str) -> str:
    if node.types != ("string",):
        return text
    wrapper = _TEMPORAL.get(node.format.replace("-", ""))
    return wrapper.format(text) if wrapper else text


def error_at(expression: str, offset: int, words: str) -> str:
    """cel-go's rendering of an error at an offset of the source."""
    line = expression.count("\n", 0, offset)
    start = expression.rfind("\n", 0, offset) + 1
    shown = expression.split("\n")[line]
    column = offset - start
    return f"ERROR: <input>:{line + 1}:{column + 1}: {words}\n | {shown}\n | {'.' * column}^"
