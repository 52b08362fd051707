"""The value types of the contract: what a number, a time or a quantity is on the wire, for pydantic and for the schema.

Invariant: pydantic and the CRD schema accept the same JSON. So numbers and booleans are strict (pydantic alone would
take "5" for 5), int32 has its range, and times are RFC 3339 text: a datetime would be re-formatted on the way back, and
equal states would no longer be equal JSON. `Fact` carries what only the schema needs (format, list type).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AllowInfNan, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

TIME_PATTERN = r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$"
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)


@dataclass(frozen=True, slots=True)
class Cel:
    """A CRD validation rule (x-kubernetes-validations) on the model or field it annotates."""

    rule: str
    message: str
    field_path: str = ""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        return {**schema, "x-kubernetes-validations": [*schema.get("x-kubernetes-validations", []), self.schema()]}

    def schema(self) -> dict[str, str]:
        rule = {"rule": self.rule, "message": self.message}
        return {**rule, "fieldPath": self.field_path} if self.field_path else rule


class Fact:
    """Schema facts merged into a field's JSON schema; `drop` names generated keywords that the facts replace."""

    def __init__(self, *drop: str, **facts: Any) -> None:
        self.drop = drop
        self.facts = {key.replace("__", "-"): value for key, value in facts.items()}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = {key: value for key, value in handler(core).items() if key not in self.drop}
        return {**schema, **self.facts}


@dataclass(frozen=True, slots=True)
class Sized:
    """A strict integer of so many bits. The range is a limit only where the field has none of its own, in whatever
    order pydantic applies the two; in the schema it is said by `format`, which the API server checks."""

    bits: int
    named: bool = True

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        limit = 1 << (self.bits - 1)
        return {"strict": True, "ge": -limit, "le": limit - 1, **handler(source)}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        limits = (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        schema = {key: value for key, value in handler(core).items() if not (key in _BOUNDS and value in limits)}
        return {**schema, "format": f"int{self.bits}"} if self.named else schema


_BOUNDS = ("minimum", "maximum")
SCHEMA_DEFAULT = Fact(x__gryvia__default=True)
"""On a field whose default the API server fills in; other defaults are the model's own and not stored."""

ALWAYS_WRITTEN = Fact(x__gryvia__required=True)
"""On a field that code may leave to its default but that the contract requires on the wire (wire() writes it always)."""

ATOMIC = Fact(x__kubernetes__list__type="atomic")
SET = Fact(x__kubernetes__list__type="set")


def keyed_by(*keys: str) -> Fact:
    """A list that is a map: server-side apply merges its items by these fields, duplicates are refused."""
    return Fact(x__kubernetes__list__type="map", x__kubernetes__list__map__keys=list(keys))


Bool = Annotated[bool, Strict()]
Int32 = Annotated[int, Sized(32)]
Int64 = Annotated[int, Sized(64)]
Integer = Annotated[int, Sized(64, named=False)]
Number = Annotated[float, Strict(), AllowInfNan(False)]
Time = Annotated[str, Field(pattern=TIME_PATTERN), Fact("pattern", format="date-time")]

_INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}

AnyJson = Annotated[Any, Fact(x__kubernetes__preserve__unknown__fields=True)]
Quantity = Annotated[
    Annotated[int, Strict()] | Annotated[str, Field(pattern=QUANTITY_PATTERN)],
    Fact(pattern=QUANTITY_PATTERN, **_INT_OR_STRING),
]
"""A Kubernetes quantity ("500m", "1Gi", 2), refused by the API server when it is none."""

QuantityText = Annotated[Annotated[int, Strict()] | str, Fact(**_INT_OR_STRING)]
"""A quantity that the service judges: the contract answers a bad one with phase Failed, not with a refusal."""
