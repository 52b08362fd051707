"""What a kind is: its names, its models and its CRD facts, as one value.

One module a kind holds its pydantic spec and status and ends with its Kind; the CRD, the reference page, the runtime's
parsing and the bridge's watch list all follow from that value, so that nothing about a kind is written twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from gryvia_common.kinds.model import Spec, Status
from gryvia_common.kinds.wire import Cel
from gryvia_common.kube.resources import GROUP, VERSION, Resource

__all__ = ["AGE", "Cel", "Column", "Entries", "Kind", "Reference", "Scale"]

S = TypeVar("S", bound=Spec)
T = TypeVar("T", bound=Status)


@dataclass(frozen=True, slots=True)
class Column:
    """An additional printer column; `type` as in OpenAPI (`date` for times)."""

    name: str
    path: str
    type: str = "string"
    format: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource's JSON paths."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


Entries = tuple[tuple[str, str], ...]
"""Names with their meaning, in the order they are listed."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the reference page of a kind says beyond its fields. `example` is a whole manifest, `conditions` maps a type to
    its reasons, labels and annotations are named without the prefix `gryvia.io/`."""

    example: str
    conditions: Entries = ()
    children: Entries = ()
    labels: Entries = ()
    annotations: Entries = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind(Generic[S, T]):
    """`label` is the child label of the contract (`gryvia.io/<label>` = object name), empty when it has none."""

    name: str
    plural: str
    spec: type[S]
    status: type[T]
    summary: str
    namespaced: bool = True
    status_subresource: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    rules: tuple[Cel, ...] = ()
    scale: Scale | None = None
    label: str = ""
    reference: Reference | None = None

    @property
    def resource(self) -> Resource:
        return Resource(GROUP, VERSION, self.plural, self.name, self.namespaced)
