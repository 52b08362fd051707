"""What a service may do, as data: its RBAC rules follow from its controllers and from what it says that it writes, its NATS
permissions (bus/permissions) from its name and the events it emits. `make docs` writes both down in deploy/.

Invariant: no wildcard, and nothing that the service does not do; a test runs everything and compares (tests/access). The
runtime reads objects from the bus, so a service never lists or watches; it reads single objects when a message was too large for
the bus, after a conflict, and to see whose an object is that stands in its way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gryvia_common.bus.permissions import Permissions
from gryvia_common.kube.objects import Json
from gryvia_common.kube.resources import EVENTS, Resource
from gryvia_common.runtime.controller import Controller

Verb = Literal["get", "list", "watch", "create", "patch", "delete"]
Writes = Mapping[Resource, tuple[Verb, ...]]

NAMESPACE = "gryvia"
_RBAC = "rbac.authorization.k8s.io"
_ORDER = ("get", "list", "watch", "create", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Rule:
    """`resource` is a plural, or `pods/log`. `names`: only these objects. `own_namespace`: only where the platform runs."""

    group: str
    resource: str
    verbs: tuple[Verb, ...]
    names: tuple[str, ...] = ()
    own_namespace: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """Everything that one service may do."""

    service: str
    rules: tuple[Rule, ...]
    permissions: Permissions

    @property
    def account(self) -> str:
        return f"gryvia-{self.service}"


def controller_rules(controllers: Sequence[Controller[Any, Any]], writes: Writes) -> tuple[Rule, ...]:
    """`writes`: how each type is written, besides the status of the controllers' own kinds: `create`, `patch` (a child that is
    brought back to what it should be, or metadata of the kind itself), `delete`. Raises ValueError for what does not fit the
    controllers."""
    verbs: dict[tuple[str, str], set[Verb]] = defaultdict(set)
    for controller in controllers:
        kind = controller.kind.resource
        verbs[kind.group, f"{kind.plural}/status"].add("patch")
        known = {r.plural: r for r in (kind, *controller.children, *controller.ref_resources)}
        for resource in known.values():
            verbs[resource.group, resource.plural].add("get")
        for subresource in controller.subresources:
            verbs[known[subresource.partition("/")[0]].group, subresource].add("get")
    for resource, written in writes.items():
        if (resource.group, resource.plural) not in verbs:
            raise ValueError(f"{resource.plural} is written but is neither kind nor child of a controller")
        verbs[resource.group, resource.plural].update(written)
    verbs[EVENTS.group, EVENTS.plural] |= {"create", "patch"}
    return tuple(Rule(group, name, ordered(found)) for (group, name), found in sorted(verbs.items()))


def ordered(verbs: Iterable[Verb]) -> tuple[Verb, ...]:
    return tuple(sorted(set(verbs), key=_ORDER.index))


def manifests(access: Access, namespace: str = NAMESPACE) -> list[Json]:
    """ServiceAccount, roles and bindings, as `kubectl apply` takes them."""
    account: Json = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": access.account, "namespace": namespace, "labels": _labels(access)},
    }
    documents = [account]
    for scope, own_namespace in (("Cluster", False), ("", True)):
        rules = [rule for rule in access.rules if rule.own_namespace == own_namespace]
        if rules:
            place = {"namespace": namespace} if own_namespace else {}
            meta: Json = {"name": access.account, **place, "labels": _labels(access)}
            role: Json = {"apiVersion": f"{_RBAC}/v1", "kind": f"{scope}Role", "metadata": meta, "rules": _rules(rules)}
            binding: Json = {
                "apiVersion": f"{_RBAC}/v1",
                "kind": f"{scope}RoleBinding",
                "metadata": meta,
                "roleRef": {"apiGroup": _RBAC, "kind": f"{scope}Role", "name": access.account},
                "subjects": [{"kind": "ServiceAccount", "name": access.account, "namespace": namespace}],
            }
            documents += [role, binding]
    return documents


def _rules(rules: Sequence[Rule]) -> list[Json]:
    """What is alike but for the resource stands in one rule."""
    alike: dict[tuple[str, tuple[Verb, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for rule in rules:
        alike[rule.group, rule.verbs, rule.names].append(rule.resource)
    return [
        {
            "apiGroups": [group],
            "resources": resources,
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(verbs),
        }
        for (group, verbs, names), resources in alike.items()
    ]


def _labels(access: Access) -> dict[str, str]:
    return {"app.kubernetes.io/name": access.account, "app.kubernetes.io/part-of": "gryvia"}
