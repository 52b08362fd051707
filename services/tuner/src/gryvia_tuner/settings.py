"""The settings of the tuner service: those of every service, and the two caps of the contract."""

from __future__ import annotations

from pydantic import Field

from gryvia_common.runtime.settings import ProcessSettings


class TunerSettings(ProcessSettings):
    """GRYVIA_TUNER_MAX_TRIALS and GRYVIA_TUNER_MAX_PARALLELISM."""

    tuner_max_trials: int = Field(default=1000, ge=1, description="Most trials a study may ask for.")
    tuner_max_parallelism: int = Field(default=32, ge=1, description="Most trials of one study at the same time.")
