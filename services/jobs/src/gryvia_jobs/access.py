"""What the job service may do, beside what follows from its controller. Small on purpose: who asks only what a service may say on
the bus must not load the service.
"""

from __future__ import annotations

from gryvia_common.bus.permissions import service_permissions
from gryvia_common.kube.resources import JOBS, PVCS, SERVICES, STATEFUL_SETS
from gryvia_common.runtime.access import Access, Writes, controller_rules

PERMISSIONS = service_permissions("jobs", emits=("job",))
WRITES: Writes = {
    JOBS: ("create", "patch", "delete"),
    STATEFUL_SETS: ("create", "delete"),
    SERVICES: ("create", "patch", "delete"),
    PVCS: ("create", "delete"),
}


def access() -> Access:
    from gryvia_jobs.controller import controller
    from gryvia_jobs.settings import JobsSettings

    return Access("jobs", controller_rules((controller(JobsSettings()),), WRITES), PERMISSIONS)
