"""Multivariate TPE by Optuna, with what it lacks: it repeats no point, and judges small steps from the best.

Optuna's own repeats (40 of the 60 points of a small space in 60 asks), so its tried candidates are masked out before it
picks. Running trials are constant liars. There is no way to add candidates from outside: `_compute_acquisition_func` is
private to Optuna's sampler, so the package is pinned to one major version of it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache
from typing import Any

import numpy as np
import optuna
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from gryvia_search.space import Point, Space

CANDIDATES = 64
CACHED = 1000


class Tpe:
    """Holds nothing but a bounded cache of a pure function."""

    def __init__(self) -> None:
        self._frozen = lru_cache(maxsize=CACHED)(_frozen)

    def suggest(
        self,
        space: Space,
        results: Sequence[tuple[Point, float | None]],
        tried: Set[Point],
        seed: int,
        near: Sequence[Point],
    ) -> Point:
        """`results`: points of this space, smaller is better, None while running. `near`: candidates beside its own, at most
        CANDIDATES."""
        trials = [self._frozen(space, point, value) for point, value in results]
        study = optuna.Study("history", _History(trials))
        current = _frozen(space, None, None)
        current.number = len(trials)
        return space.decode(_Sampler(space, tried, seed, near).sample_relative(study, current, space.distributions))


def _frozen(space: Space, point: Point | None, value: float | None) -> FrozenTrial:
    encoded = {} if point is None else space.encode(point) or {}
    return optuna.trial.create_trial(
        params=encoded,
        distributions=space.distributions if encoded else {},
        value=value,
        state=TrialState.RUNNING if value is None else TrialState.COMPLETE,
    )


class _History(InMemoryStorage):
    """A minimised study that is a given list of trials: building Optuna's own costs 50 µs a trial in deep copies."""

    def __init__(self, trials: list[FrozenTrial]) -> None:
        super().__init__()
        self._given = trials

    def get_study_id_from_name(self, study_name: str) -> int:
        return 0

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        return [StudyDirection.MINIMIZE]

    def get_all_trials(self, study_id: int, deepcopy: bool = True, states: Any = None) -> list[FrozenTrial]:
        return [trial for trial in self._given if states is None or trial.state in states]

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        """The sampler leaves its suggestion for other workers here; there are none."""


class _Sampler(optuna.samplers.TPESampler):
    """TPE that judges small steps from the best beside its own samples, and picks the best candidate that was not tried."""

    def __init__(self, space: Space, tried: Set[Point], seed: int, near: Sequence[Point]) -> None:
        super().__init__(
            seed=seed, n_startup_trials=0, n_ei_candidates=CANDIDATES, multivariate=True, constant_liar=True
        )
        self._space = space
        self._tried = tried
        self._near = near

    def _compute_acquisition_func(self, samples: Any, mpe_below: Any, mpe_above: Any) -> np.ndarray:
        """Optuna then takes the candidate with the highest value out of `samples`."""
        for index, point in enumerate(self._near):
            for name, value in (self._space.encode(point) or {}).items():
                samples[name][index] = self._space.distributions[name].to_internal_repr(value)
        values: np.ndarray = super()._compute_acquisition_func(samples, mpe_below, mpe_above)
        for index in np.argsort(-values):
            if self._point(samples, int(index)) not in self._tried:
                break
            values[index] = -np.inf
        return values

    def _point(self, samples: Any, index: int) -> Point:
        return self._space.decode(
            {
                name: distribution.to_external_repr(samples[name][index].item())
                for name, distribution in self._space.distributions.items()
            }
        )
