"""What the registry may do, beside what follows from its controller. Small on purpose: who asks only what a service may say on the
bus must not load the service.
"""

from __future__ import annotations

from gryvia_common.bus.permissions import service_permissions
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kube.resources import CONFIG_MAPS
from gryvia_common.runtime.access import Access, Writes, controller_rules

PERMISSIONS = service_permissions("registry", emits=("model",))
WRITES: Writes = {MODEL_REGISTRY.resource: ("patch",), CONFIG_MAPS: ("create", "patch")}


def access() -> Access:
    from gryvia_registry.controller import controller
    from gryvia_registry.settings import RegistrySettings

    return Access("registry", controller_rules((controller(RegistrySettings()),), WRITES), PERMISSIONS)
