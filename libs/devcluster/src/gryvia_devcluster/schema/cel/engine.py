"""The CEL engine with Kubernetes' functions in it: compile an expression for a type of `self`, evaluate it over JSON.

Values are dynamically typed when a rule is evaluated; `check_types` is for the static types of a CRD's check.
Everything is imported and built when it is first needed.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

from gryvia_devcluster.schema.cel.functions_text import TEXT_FUNCTIONS, Declaration
from gryvia_devcluster.schema.cel.functions_value import VALUE_FUNCTIONS

OLD_VALUES = "__old"


class CompileError(Exception):
    """The expression is no CEL, or does not fit the types. The text is the real server's, `ERROR: <input>:...`."""


class EvaluationError(Exception):
    """The expression has no value for these data, e.g. `no such key: x`."""


class Program:
    """A compiled expression over `self`, `oldSelf` and, for optional old values, a list of none or one."""

    __slots__ = ("_expression", "result")

    def __init__(self, expression: Any) -> None:
        self._expression = expression
        self.result: str = expression.return_type().name()

    def evaluate(self, value: Any, old: Any) -> Any:
        data = {"self": value, "oldSelf": old, OLD_VALUES: [] if old is None else [old]}
        result = self._expression.eval(data=data)
        plain = result.plain_value()
        if result.type().name() == "ERROR":
            raise EvaluationError(_translate(str(plain)))
        return plain


def compile_expression(source: str) -> Program:
    """An expression over a `self` and `oldSelf` of any type. Raises CompileError."""
    return _compile(_environment(), source)


def check_types(source: str, variables: dict[str, str]) -> str:
    """The type of an expression over variables of types such as `int`, `list<string>` and `map<dyn>`, which is only
    checked and never evaluated. Raises CompileError."""
    return _compile(_build({name: _type(kind) for name, kind in variables.items()}), source).result


def _compile(environment: Any, source: str) -> Program:
    try:
        return Program(environment.compile(source))
    except RuntimeError as failed:
        text = re.sub(r"^[A-Z_]+: ", "", str(failed)).replace("null_type", "null")
        raise CompileError(re.sub(r" \[[A-Z_]+\]$", "", text)) from failed


def pattern_error(pattern: str) -> str | None:
    """Why RE2, the real server's engine, refuses a pattern."""
    try:
        _pattern_probe().evaluate(pattern, None)
    except EvaluationError as failed:
        words, _, part = str(failed).removeprefix("invalid regular expression: ").partition(": ")
        return f"{_GO_WORDS.get(words, words)}: `{part}`" if part else words
    return None


# RE2's words where Go's regexp has others for the same refusal.
_GO_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "unexpected )": "unexpected )",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
}


@cache
def _pattern_probe() -> Program:
    return compile_expression("''.matches(self)")


@cache
def _library() -> tuple[Any, Any]:
    """cel-cpp's modules, imported at the first rule. They ship stubs but no py.typed marker, hence Any."""
    return import_module("cel_expr_python.cel"), import_module("cel_expr_python.ext.ext_optional")


@cache
def _environment() -> Any:
    return _build({"self": _type("dyn"), "oldSelf": _type("dyn"), OLD_VALUES: _type("list")})


def _build(variables: dict[str, Any]) -> Any:
    cel, ext_optional = _library()
    return cel.NewEnv(variables=variables, extensions=[_kubernetes(), ext_optional.ExtOptional()])


@cache
def _kubernetes() -> Any:
    cel, _ = _library()
    grouped: dict[str, list[Declaration]] = {}
    for declaration in (*TEXT_FUNCTIONS, *VALUE_FUNCTIONS):
        grouped.setdefault(declaration[0], []).append(declaration)
    functions = []
    for name, declarations in grouped.items():
        overloads = [
            cel.Overload(
                f"{name}_{'_'.join(parameters)}",
                _type(result),
                [_type(parameter) for parameter in parameters],
                is_member,
                implementation,
            )
            for _, parameters, result, is_member, implementation in declarations
        ]
        functions.append(cel.FunctionDecl(name, overloads))
    return cel.CelExtension("kubernetes", functions)


@cache
def _type(name: str) -> Any:
    cel, _ = _library()
    kinds = cel.Type
    if name.startswith("list<"):
        return kinds.List(_type(name[5:-1]))
    if name.startswith("map<"):
        return kinds.Map(kinds.STRING, _type(name[4:-1]))
    return {
        "bool": kinds.BOOL,
        "bytes": kinds.BYTES,
        "double": kinds.DOUBLE,
        "duration": kinds.DURATION,
        "dyn": kinds.DYN,
        "int": kinds.INT,
        "list": kinds.List(kinds.DYN),
        "string": kinds.STRING,
        "timestamp": kinds.TIMESTAMP,
    }[name]


_KNOWN_ERRORS = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero|modulus by zero"), "division by zero"),
    (
        re.compile(r"No matching overloads found.*|.*SELECT to non-message type.*|no such overload.*"),
        "no such overload",
    ),
    (re.compile(r"(integer|int64|uint64) overflow"), "integer overflow"),
)


def _translate(text: str) -> str:
    """cel-cpp's words into cel-go's."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    for pattern, words in _KNOWN_ERRORS:
        if pattern.search(text):
            return pattern.sub(words, text)
    return text
