"""The Controller of GryviaAutoTuner, as the runtime wants it."""

from __future__ import annotations

from functools import lru_cache, partial

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER, GryviaAutoTunerSpec, GryviaAutoTunerStatus
from gryvia_common.kinds.trials import read_block
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import Controller
from gryvia_common.runtime.unparsed import unparsed
from gryvia_search.search import Search
from gryvia_tuner import warmstart
from gryvia_tuner.decide import decide
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.study import Tools

READ_BLOCKS = 256
"""Decoded blocks of archives kept at hand, over all studies: 128,000 trials."""


def controller(settings: TunerSettings) -> Controller[GryviaAutoTunerSpec, GryviaAutoTunerStatus]:
    """The caches live in this value, not in a module; they only save time."""
    tools = Tools(settings, Search(), lru_cache(maxsize=READ_BLOCKS)(read_block))
    return Controller(
        kind=AUTO_TUNER,
        decide=partial(decide, tools=tools),
        invalid=partial(unparsed, AUTO_TUNER, lambda status: bool(status.trials_launched)),
        children=(AI_JOB.resource, CONFIG_MAPS),
        ref_resources=(AUTO_TUNER.resource, CONFIG_MAPS),
        refs=warmstart.refs,
        offload=True,
    )
