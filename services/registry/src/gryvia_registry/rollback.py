"""Whether the production entry gives its place back, and to whom: by policy or on request.

Back means back in time: to what was in production before this entry, by the family's record. What was rolled back itself, or taken
out by hand, when it last was in production is passed over, and so is what was deleted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from gryvia_common.kinds.families import Term
from gryvia_common.kube.objects import Json, is_deleting, metadata
from gryvia_common.kube.resources import GROUP
from gryvia_models import family as changes
from gryvia_models.policies import breached
from gryvia_models.serving import names
from gryvia_registry.serving import services_of
from gryvia_registry.standing import CANDIDATES, Standing

REQUESTED = f"{GROUP}/rollback-requested"
Why = Literal["Requested", "PolicyBreached"]


@dataclass(frozen=True, slots=True)
class Rollback:
    """`target` None: refused, or not yet possible, for `refused` (a reason) and `message`."""

    why: Why
    message: str
    target: tuple[Term, Json] | None = None
    refused: str = ""

    @property
    def waits(self) -> bool:
        """A breach stays one: what is under way is waited for. Who asks is told at once."""
        return self.refused == "NotStable" and self.why == "PolicyBreached"


def wanted(standing: Standing) -> Rollback | None:
    """None when nobody and nothing asks for one."""
    entry = standing.entry
    requested = entry.annotations.get(REQUESTED)
    if requested is not None:
        return _judged(standing, "Requested", f"requested: {requested}"[:200])
    policy = entry.spec.rollback_policy
    breach = breached(policy, entry.spec.metadata or {}) if policy is not None and standing.holds else ""
    return _judged(standing, "PolicyBreached", breach) if breach else None


def _judged(standing: Standing, why: Why, message: str) -> Rollback:
    current = standing.family.current
    if current is None or current.uid != standing.entry.uid:
        said = f"{standing.entry.name} is not the production entry of {standing.entry.spec.model_name}"
        return Rollback(why, said, refused="NotServing")
    unstable = _unstable(standing)
    if unstable:
        return Rollback(why, unstable, refused="NotStable")
    gone = []
    for term in changes.previous(standing.family, current)[:CANDIDATES]:
        found = standing.seen(term)
        if found is not None and not is_deleting(found):
            if int(metadata(found).get("generation") or 1) < term.generation:
                return Rollback(why, f"{term.entry} is not seen as it is by now", refused="NotStable")
            return Rollback(why, message, target=(term, found))
        gone.append(term.entry)
    said = (
        f"nothing to go back to: {', '.join(gone[:3])} was deleted before"
        if gone
        else "nothing was in production before"
    )
    return Rollback(why, said, refused="NoPreviousVersion")


def _unstable(standing: Standing) -> str:
    """A move that is still under way, here or in a service that serves the entry."""
    if standing.stage != "production" or not standing.confirmed or standing.family.demoting:
        return "the last change of the production entry is not complete yet"
    for service in services_of(standing.entry, standing.world):
        if len(names(service)) > 1:
            name = json.dumps(service["metadata"]["name"])
            return f"GryviaInferenceService {name} is between two versions: {', '.join(sorted(names(service)))}"
    return ""
