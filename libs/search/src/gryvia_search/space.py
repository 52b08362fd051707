"""The search space: the product of its dimensions.

A point is the tuple of the values as text, in the order of the dimensions, so that "tried already" is equality of text and no
float is ever compared. The grid is index arithmetic, never a list of 100,000 points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from optuna.distributions import BaseDistribution

from gryvia_search.dimensions import Continuous, Dimension, Encoded

Point = tuple[str, ...]


@dataclass(frozen=True)
class Space:
    """The product of its dimensions. Not slotted: its derived values are cached."""

    dimensions: tuple[Dimension, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(dimension.name for dimension in self.dimensions)

    @cached_property
    def radices(self) -> tuple[int, ...]:
        return tuple(dimension.levels for dimension in self.dimensions)

    @cached_property
    def grid_size(self) -> int:
        return math.prod(self.radices)

    @cached_property
    def finite(self) -> bool:
        """Whether the grid is the whole space."""
        return not any(isinstance(dimension, Continuous) for dimension in self.dimensions)

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        return {dimension.name: dimension.distribution() for dimension in self.dimensions}

    def grid_point(self, index: int) -> Point:
        """The last parameter moves fastest."""
        texts = []
        for dimension, radix in zip(reversed(self.dimensions), reversed(self.radices), strict=True):
            index, digit = divmod(index, radix)
            texts.append(dimension.level(digit))
        return tuple(reversed(texts))

    def grid_index(self, point: Point) -> int | None:
        """None for a point that is not on the grid."""
        index = 0
        for dimension, radix, text in zip(self.dimensions, self.radices, point, strict=True):
            try:
                digit = dimension.level_of(text)
            except ValueError:
                return None
            if digit is None:
                return None
            index = index * radix + digit
        return index

    def draw(self, rng: np.random.Generator) -> Point:
        return tuple(dimension.draw(rng) for dimension in self.dimensions)

    def neighbour(self, point: Point, rng: np.random.Generator) -> Point:
        """The point with one value moved a little (another word for a categorical one); it may be the same point."""
        index = int(rng.integers(len(point)))
        return *point[:index], self.dimensions[index].neighbour(point[index], rng), *point[index + 1 :]

    def point(self, parameters: Mapping[str, str]) -> Point | None:
        """None when these are the parameters of another space."""
        if parameters.keys() != set(self.names):
            return None
        return tuple(parameters[name] for name in self.names)

    def parameters(self, point: Point) -> dict[str, str]:
        return dict(zip(self.names, point, strict=True))

    def encode(self, point: Point) -> dict[str, Encoded] | None:
        """The values as Optuna wants them; None for a point outside the space (the spec may have changed)."""
        encoded: dict[str, Encoded] = {}
        for dimension, text in zip(self.dimensions, point, strict=True):
            try:
                value = dimension.encode(text)
            except ValueError:
                return None
            if value is None:
                return None
            encoded[dimension.name] = value
        return encoded

    def decode(self, encoded: Mapping[str, Encoded]) -> Point:
        return tuple(dimension.text(encoded[dimension.name]) for dimension in self.dimensions)
