"""What the bridge may do: list and watch what it watches, know which cluster it is, keep its own Lease; on the bus, write
objects and make streams. It changes nothing else.
"""

from __future__ import annotations

from gryvia_bridge.lease import LeaseSettings
from gryvia_bridge.watched import WATCHED
from gryvia_common.bus.permissions import bridge_permissions
from gryvia_common.kube.resources import LEASES, NAMESPACES
from gryvia_common.runtime.access import NAMESPACE, Access, Rule

PERMISSIONS = bridge_permissions("bridge")


def access() -> Access:
    # RBAC cannot restrict a create by name: the name is not in its path.
    lease = LeaseSettings(NAMESPACE).name
    return Access(
        "bridge",
        (
            *(Rule(w.resource.group, w.plural, ("list", "watch")) for w in WATCHED),
            Rule(NAMESPACES.group, NAMESPACES.plural, ("get",), names=("kube-system",)),
            Rule(LEASES.group, LEASES.plural, ("create",), own_namespace=True),
            Rule(LEASES.group, LEASES.plural, ("get", "patch"), names=(lease,), own_namespace=True),
        ),
        PERMISSIONS,
    )
