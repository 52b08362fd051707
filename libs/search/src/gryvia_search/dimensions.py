"""One dimension of a search space: which values there are, how they are written, counted, drawn and handed to Optuna.

A value is text, exactly what a trial reads. Floats have 6 significant digits and never leave their bounds by rounding.
Listed numbers are ordinal, not categorical: the model may use that 1e-3 lies between 1e-4 and 1e-2. `text` and `encode`
translate to and from the values of Optuna's distribution; `level` counts the values of the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

Encoded = float | int | str

GRID_LEVELS = 11
DIGITS = 6
LONGEST_FLOAT = 24
NEAR = 0.1
"""Standard deviation of a small move, as a share of the range."""


@dataclass(frozen=True, slots=True)
class Continuous:
    """A float between two bounds."""

    name: str
    low: float
    high: float
    log: bool = False

    def text(self, value: Encoded) -> str:
        """6 significant digits; where rounding would leave the bounds, the next such number inside; more digits only when
        there is none."""
        number = min(max(float(value), self.low), self.high)
        for rounding in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING):
            rounded = float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(number))
            if self.low <= rounded <= self.high:
                return format(rounded, f".{DIGITS}g")
        return repr(number)

    def encode(self, text: str) -> Encoded | None:
        number = float(text)
        return number if self.low <= number <= self.high else None

    def draw(self, rng: np.random.Generator) -> str:
        return self.at(rng.random())

    def neighbour(self, text: str, rng: np.random.Generator) -> str:
        return self.at(min(max(self.position(text) + rng.normal() * NEAR, 0.0), 1.0))

    def at(self, position: float) -> str:
        """The value at 0 (low) to 1 (high) on the scale."""
        return self.text(self._between(position))

    def position(self, text: str) -> float:
        scale = math.log if self.log else float
        low, high = scale(self.low), scale(self.high)
        return min(max((scale(float(text)) - low) / (high - low), 0.0), 1.0)

    @property
    def levels(self) -> int:
        return len(self._grid())

    def level(self, index: int) -> str:
        return self._grid()[index]

    def level_of(self, text: str) -> int | None:
        grid = self._grid()
        return grid.index(text) if text in grid else None

    @property
    def longest(self) -> int:
        return LONGEST_FLOAT

    def distribution(self) -> BaseDistribution:
        return FloatDistribution(self.low, self.high, log=self.log)

    def _grid(self) -> tuple[str, ...]:
        steps = GRID_LEVELS - 1
        return tuple(dict.fromkeys(self.at(index / steps) for index in range(GRID_LEVELS)))

    def _between(self, share: float) -> float:
        if share <= 0.0 or share >= 1.0:
            return self.low if share <= 0.0 else self.high
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        return self.low * (1.0 - share) + self.high * share


@dataclass(frozen=True, slots=True)
class Integers:
    """low, low + step, ... up to high, which is one of them. `log` only with step 1."""

    name: str
    low: int
    high: int
    step: int = 1
    log: bool = False

    def text(self, value: Encoded) -> str:
        return str(int(value))

    def encode(self, text: str) -> int | None:
        number = int(text)
        return number if self.low <= number <= self.high and (number - self.low) % self.step == 0 else None

    def draw(self, rng: np.random.Generator) -> str:
        if self.log:
            bounds = math.log(self.low - 0.5), math.log(self.high + 0.5)
            return str(min(max(round(math.exp(rng.uniform(*bounds))), self.low), self.high))
        return self.level(int(rng.integers(self.levels)))

    def neighbour(self, text: str, rng: np.random.Generator) -> str:
        return self.level(_near((int(text) - self.low) // self.step, self.levels, rng))

    @property
    def levels(self) -> int:
        return (self.high - self.low) // self.step + 1

    def level(self, index: int) -> str:
        return str(self.low + index * self.step)

    def level_of(self, text: str) -> int | None:
        number = self.encode(text)
        return None if number is None else (number - self.low) // self.step

    @property
    def longest(self) -> int:
        return max(len(str(self.low)), len(str(self.high)))

    def distribution(self) -> BaseDistribution:
        return IntDistribution(self.low, self.high, log=self.log, step=self.step)


@dataclass(frozen=True, slots=True)
class Choices:
    """Listed values. `ordered`: they are numbers, sorted, and the model sees their positions."""

    name: str
    values: tuple[str, ...]
    ordered: bool = False

    def text(self, value: Encoded) -> str:
        return self.values[int(value)] if self.ordered else str(value)

    def encode(self, text: str) -> Encoded | None:
        if text not in self.values:
            return None
        return self.values.index(text) if self.ordered else text

    def draw(self, rng: np.random.Generator) -> str:
        return self.values[int(rng.integers(len(self.values)))]

    def neighbour(self, text: str, rng: np.random.Generator) -> str:
        if not self.ordered:
            return self.draw(rng)
        return self.values[_near(self.values.index(text), len(self.values), rng)]

    @property
    def levels(self) -> int:
        return len(self.values)

    def level(self, index: int) -> str:
        return self.values[index]

    def level_of(self, text: str) -> int | None:
        return self.values.index(text) if text in self.values else None

    @property
    def longest(self) -> int:
        return max(len(value) for value in self.values)

    def distribution(self) -> BaseDistribution:
        if self.ordered:
            return IntDistribution(0, len(self.values) - 1)
        return CategoricalDistribution(self.values)


def _near(index: int, levels: int, rng: np.random.Generator) -> int:
    """A level close to this one; another one unless the end is in the way."""
    distance = max(1, round(abs(rng.normal()) * NEAR * levels))
    return min(max(index + (distance if rng.random() < 0.5 else -distance), 0), levels - 1)


Dimension = Continuous | Integers | Choices
