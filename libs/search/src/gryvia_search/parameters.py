"""From a parameter as a person writes it to a dimension: what is impossible, what has no effect, and what it means.

What a plain number is, who asks says: a text that is one for `float()` may be none for a manifest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gryvia_search.dimensions import Choices, Continuous, Dimension, Integers

LARGEST_INT = 1e15
LARGEST_FLOAT = 1e100
"""Beyond these the models' arithmetic is no longer exact, or not finite."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Parameter:
    """Either `values`, or `min` and `max` (with `step` for an int)."""

    name: str
    type: Literal["float", "int", "categorical"]
    min: float | None = None
    max: float | None = None
    scale: Literal["linear", "log"] = "linear"
    step: int = 1
    values: tuple[str, ...] = ()

    def problems(self, number: Callable[[str], float | None]) -> Iterator[tuple[str, str]]:
        """(field or nothing, what is wrong with it and how to mend it). A parameter without problems has a dimension.
        `number`: the value of a text, None when it is no number."""
        if self.values:
            wrong = next((text for text in self.values if not self._is_value(number(text))), None)
            if wrong is not None:
                yield "values", f'"{wrong}" is not a plain {self.type}; write a decimal number or use categorical'
        elif self.type == "categorical":
            yield "values", "missing; a categorical parameter needs at least one value"
        elif self.min is None or self.max is None:
            yield "min" if self.min is None else "max", "missing; set min and max, or list the values"
        elif self.min >= self.max:
            yield "min", f"{self.min:g} must be less than max ({self.max:g})"
        else:
            yield from self._bound_problems(self.min, self.max)

    def _is_value(self, number: float | None) -> bool:
        return self.type == "categorical" or (number is not None and (self.type == "float" or number.is_integer()))

    def _bound_problems(self, low: float, high: float) -> Iterator[tuple[str, str]]:
        limit = LARGEST_INT if self.type == "int" else LARGEST_FLOAT
        if max(abs(low), abs(high)) > limit:
            yield "", f"min {low:g} and max {high:g} must be within {limit:g}; search the exponent instead"
        if self.scale == "log" and low <= 0:
            yield "min", f"{low:g} must be above 0 for scale log; raise it or use scale linear"
        if self.type == "int":
            if self.step < 1:
                yield "step", f"{self.step} must be 1 or more"
            if math.ceil(low) > math.floor(high):
                yield "min", f"there is no whole number between {low:g} and {high:g}; widen the bounds or use float"

    def without_effect(self) -> Iterator[str]:
        """The fields that mean nothing in this combination, each with the reason."""
        listed = bool(self.values)
        if listed and (self.min is not None or self.max is not None):
            yield "min and max, because values are listed"
        if self.scale == "log" and (listed or self.type == "categorical"):
            yield "scale, because values are listed"
        elif self.scale == "log" and self.type == "int" and self.step > 1:
            yield f"scale log, because step is {self.step}"
        if self.step != 1 and (listed or self.type != "int"):
            yield "step, which is for an int between min and max"

    def dimension(self) -> Dimension:
        if self.values and self.type == "categorical":
            return Choices(self.name, tuple(dict.fromkeys(self.values)))
        if self.values:
            by_number = {float(text): text for text in reversed(self.values)}
            return Choices(self.name, tuple(by_number[number] for number in sorted(by_number)), ordered=True)
        assert self.min is not None  # problems() has seen to both
        assert self.max is not None
        log = self.scale == "log"
        if self.type == "float":
            return Continuous(self.name, self.min, self.max, log)
        low = math.ceil(self.min)
        high = low + (math.floor(self.max) - low) // self.step * self.step
        return Integers(self.name, low, high, self.step, log and self.step == 1)


def problems(parameters: Sequence[Parameter], number: Callable[[str], float | None]) -> Iterator[tuple[str, str]]:
    """(path into the list or nothing, what is wrong there and how to mend it); `number` as above."""
    if not parameters:
        yield "", "empty; add at least one parameter"
    seen: set[str] = set()
    for index, parameter in enumerate(parameters):
        if not _NAME.fullmatch(parameter.name):
            yield f"[{index}].name", f'"{parameter.name}" must be made of letters, digits, "_", "." and "-"'
        elif parameter.name in seen:
            yield f"[{index}].name", f'"{parameter.name}" is there twice; give each parameter its own name'
        seen.add(parameter.name)
        for field, text in parameter.problems(number):
            yield f"[{index}] ({parameter.name}){'.' if field else ''}{field}", text
