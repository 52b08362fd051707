"""Refusals of server-side apply: which of a configuration's changed fields others own, in the real server's words."""

from __future__ import annotations

from dataclasses import dataclass

from gryvia_devcluster.errors import ApiError
from gryvia_devcluster.patch import fieldset
from gryvia_devcluster.patch.claims import element_text
from gryvia_devcluster.patch.fieldset import FieldSet
from gryvia_devcluster.patch.ownership import Managed, ManagerId

CAUSE = "FieldManagerConflict"


@dataclass(frozen=True, slots=True)
class Conflict:
    manager: ManagerId
    path: tuple[str, ...]

    @property
    def who(self) -> str:
        text = f'"{self.manager.manager}"'
        if self.manager.subresource:
            text += f' with subresource "{self.manager.subresource}"'
        return f"{text} using {self.manager.api_version}" if self.manager.operation == "Update" else text

    @property
    def field(self) -> str:
        return "".join(element_text(part) for part in self.path)


def find_conflicts(managed: Managed, me: ManagerId, changed: FieldSet) -> list[Conflict]:
    found: list[Conflict] = []
    for key in sorted(managed, key=lambda key: (key.manager, key.operation, key.api_version, key.subresource)):
        if key == me:
            continue
        contested = fieldset.intersection(managed[key].fields, changed)
        found.extend(Conflict(key, path) for path in fieldset.members_first(contested))
    return found


def refusal(conflicts: list[Conflict]) -> ApiError:
    causes = [{"reason": CAUSE, "message": f"conflict with {each.who}", "field": each.field} for each in conflicts]
    if len(conflicts) == 1:
        detail = f"1 conflict: conflict with {conflicts[0].who}: {conflicts[0].field}"
    else:
        grouped: dict[str, list[str]] = {}
        for each in conflicts:
            grouped.setdefault(each.who, []).append(each.field)
        lines = []
        for who, fields in grouped.items():
            lines += [f"conflicts with {who}:", *(f"- {name}" for name in fields)]
        detail = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return ApiError("Conflict", f"Apply failed with {detail}", causes)
