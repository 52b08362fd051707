"""The Controller of GryviaAutoTuner, as the runtime wants it."""

from __future__ import annotations

from functools import lru_cache, partial

from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER, GryviaAutoTunerSpec, GryviaAutoTunerStatus
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.controller import Controller
from gryvia_search.search import Search
from gryvia_tuner import archive, warmstart
from gryvia_tuner.decide import Tools, decide
from gryvia_tuner.settings import TunerSettings
from gryvia_tuner.status import unreadable

READ_BLOCKS = 256
"""Decoded blocks of archives kept at hand, over all studies: 128,000 trials."""


def controller(settings: TunerSettings) -> Controller[GryviaAutoTunerSpec, GryviaAutoTunerStatus]:
    """The caches live in this value, not in a module; they only save time."""
    read_block = lru_cache(maxsize=READ_BLOCKS)(archive.read_block)
    tools = Tools(settings, Search(), read_block)
    return Controller(
        kind=AUTO_TUNER,
        decide=partial(decide, tools=tools),
        invalid=unreadable,
        children=(AI_JOB.resource, CONFIG_MAPS),
        ref_resources=(AUTO_TUNER.resource, CONFIG_MAPS),
        refs=warmstart.refs,
        offload=True,
    )
