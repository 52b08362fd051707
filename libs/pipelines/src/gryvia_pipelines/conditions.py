"""Conditions of steps: CEL over `steps.<name>.status`, `steps.<name>.outputs.<key>` and `parameters.<name>`.

The contract's form (`steps.a.status == 'Succeeded' && ...`) is CEL already. Two things are ours: names with dashes work, because a
reference is brought into the form `steps["pre-process"]` first (all values are texts, so a dash after a name is never a minus); and
`double()` takes plain finite decimals only, because CEL's own takes "inf" and "nan" and a score of that kind must pass no gate.
A condition may name what its step depends on, directly or through others: only that has ended when it is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args

from gryvia_common.kinds.workflow import StepPhase
from gryvia_common.numbers import parse_decimal

PHASES: tuple[str, ...] = get_args(StepPhase)
LONGEST = 4096
_RESERVED = re.compile(
    "as|break|const|continue|else|false|for|function|if|import|in|let|loop|namespace|null|package|return|true|var|void|while"
)
_TOKEN = re.compile(
    r"""(?P<text>[rRbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?<![\w.])steps\s*(?:\.\s*(?P<step>[A-Za-z0-9]+(?:-+[A-Za-z0-9]+)*)(?![\w-]*\s*\()|\[\s*(?P<quote>["'])(?P<quoted>[A-Za-z0-9-]+)(?P=quote)\s*\])
        (?:\s*\.\s*(?P<part>\w+)(?:(?<=outputs)\s*\.\s*(?P<key>[A-Za-z0-9_]+(?:-+[A-Za-z0-9_]+)*)(?![\w-]*\s*\())?)?
        (?P<compared>\s*[=!]=\s*(?:"(?P<phase>[^"]*)"|'(?P<phase_>[^']*)'))?
    |(?<![\w.])parameters\s*\.\s*(?P<parameter>[A-Za-z0-9_]+(?:-+[A-Za-z0-9_]+)*)(?![\w-]*\s*\()
    |(?<![\w.])(?P<all>steps)\b
    |(?<![\w.])(?P<number>double)(?=\s*\()""",
    re.VERBOSE,
)
_NUMBER = "gryvia_number"


class BadCondition(Exception):
    """Not a condition: the text says what is wrong with it."""


class NoAnswer(Exception):
    """The condition has no value for these data: the text says why."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition. `steps`: which it names, or `everything` when it goes over all of them."""

    steps: frozenset[str]
    everything: bool
    outputs: bool
    program: Any

    def holds(self, steps: Mapping[str, Mapping[str, Any]], parameters: Mapping[str, str]) -> bool:
        """`steps`: status and outputs of those it names. Raises NoAnswer."""
        try:
            result = self.program.eval(data={"steps": steps, "parameters": parameters})
        except RuntimeError as error:
            raise NoAnswer(_said(str(error))) from error
        answer = result.plain_value()
        if result.type().name() == "ERROR":
            raise NoAnswer(_said(str(answer)))
        if not isinstance(answer, bool):
            raise NoAnswer(f"it gives {answer!r}, not true or false")
        return answer


def compile_condition(text: str) -> Condition:
    """Raises BadCondition."""
    if len(text) > LONGEST:
        raise BadCondition(f"{len(text)} characters are too many, {LONGEST} are allowed")
    named, everything, outputs = set[str](), False, False

    def canonical(match: re.Match[str]) -> str:
        nonlocal everything, outputs
        part = match.groupdict()
        if part["text"]:
            return match[0]
        if part["number"]:
            return _NUMBER
        if part["all"]:
            everything = outputs = True
            return match[0]
        if part["parameter"]:
            return f"parameters{_select(part['parameter'])}"
        step = part["step"] or part["quoted"]
        named.add(step)
        outputs |= part["part"] != "status"
        said = f'steps["{step}"]'
        if part["part"] is not None:
            if part["part"] not in ("status", "outputs"):
                raise BadCondition(f"steps.{step}.{part['part']}: a step has .status and .outputs.<key>")
            said += f".{part['part']}{_select(part['key'])}"
        return said + _compared(part)

    source = _TOKEN.sub(canonical, text)
    try:
        program = _environment().compile(source)
    except RuntimeError as error:
        raise BadCondition(_said(str(error))) from error
    kind = program.return_type().name()
    if kind not in ("BOOL", "DYN"):
        raise BadCondition(f"it gives {kind.lower()}, not true or false")
    return Condition(frozenset(named), everything, outputs, program)


Compile = Callable[[str], Condition]


def _select(key: str | None) -> str:
    if key is None:
        return ""
    plain = key.isidentifier() and not _RESERVED.fullmatch(key)
    return f".{key}" if plain else f'["{key}"]'


def _compared(part: Mapping[str, str | None]) -> str:
    """The comparison behind a status; only a phase can ever be equal to one."""
    if part["compared"] is None:
        return ""
    phase = part["phase"] if part["phase"] is not None else part["phase_"]
    if part["part"] == "status" and phase not in PHASES:
        raise BadCondition(f'"{phase}" is no phase; a status is one of {", ".join(PHASES)}')
    return part["compared"]


def _number(value: Any) -> float:
    if isinstance(value, str):
        number = parse_decimal(value)
        if number is None:
            raise ValueError(f'"{value[:40]}" is not a plain finite decimal number')
        return number
    return float(value)


@cache
def _environment() -> Any:
    """Built at the first condition; cel-cpp ships stubs but no py.typed marker, hence Any."""
    cel: Any = import_module("cel_expr_python.cel")
    kinds = cel.Type
    declared = cel.FunctionDecl(_NUMBER, [cel.Overload(f"{_NUMBER}_dyn", kinds.DYN, [kinds.DYN], False, _number)])
    variables = {"steps": kinds.Map(kinds.STRING, kinds.DYN), "parameters": kinds.Map(kinds.STRING, kinds.STRING)}
    return cel.NewEnv(variables=variables, extensions=[cel.CelExtension("gryvia", [declared])])


def _said(text: str) -> str:
    """cel-cpp's words, the first error alone, without its codes and without the drawing below."""
    lines: Iterator[str] = (re.sub(r"^([A-Z_]+: )*(ERROR: )?(<input>:)?", "", line) for line in text.splitlines())
    said = re.sub(r" \[[A-Z_]+\]$", "", next(lines, text)).replace(_NUMBER, "double")
    if "has() argument" in said:
        said += '; for a key with dashes write "<key>" in steps.<name>.outputs'
    return re.sub(r'Key not found in map : "?(.*?)"?$', r"there is no \1", said)
