"""What the tuner may do, beside what follows from its controller. Small on purpose: who asks only what a service may say on the
bus must not load the service.
"""

from __future__ import annotations

from gryvia_common.bus.permissions import service_permissions
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.access import Access, Writes, controller_rules

PERMISSIONS = service_permissions("tuner", emits=("trial", "tuner"))
WRITES: Writes = {AI_JOB.resource: ("create", "delete"), CONFIG_MAPS: ("create", "patch")}


def access() -> Access:
    from gryvia_tuner.controller import controller
    from gryvia_tuner.settings import TunerSettings

    return Access("tuner", controller_rules((controller(TunerSettings()),), WRITES), PERMISSIONS)
