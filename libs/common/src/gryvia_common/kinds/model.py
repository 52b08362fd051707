"""The base models of the contract: camelCase on the wire, snake_case in code.

A Spec refuses nothing it does not know (an old service must read a newer object; the API server prunes unknown fields);
a Status is what a service writes: None and empty values are left out, so that equal states are equal JSON.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from gryvia_common.kinds.wire import ALWAYS_WRITTEN, Cel, Int64, Time, keyed_by


class Model(BaseModel):
    """Any part of the contract. Fields are snake_case; the wire name is camelCase unless an alias says otherwise."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    rules: ClassVar[tuple[Cel, ...]] = ()
    """Cross-field rules that the API server checks (CEL); they hold wherever the model stands in a kind."""

    see: ClassVar[str] = ""
    """Where the reference documents this model, when it is more than a part of one kind."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        definition = handler.resolve_ref_schema(schema)
        if cls.rules:
            definition["x-kubernetes-validations"] = [rule.schema() for rule in cls.rules]
        if cls.see:
            definition["x-gryvia-see"] = cls.see
        return schema

    def wire(self) -> dict[str, Any]:
        """JSON as it is written to the API server: by alias, without None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Spec(Model):
    """The spec of a kind."""


class Condition(Model):
    """metav1.Condition."""

    type: str = Field(description="What the condition is about, in CamelCase.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: str = Field(description="Why, as one CamelCase word for programs.")
    message: Annotated[str, ALWAYS_WRITTEN] = Field("", description="Why, for people.")
    last_transition_time: Time = Field(description="When status last changed.")
    observed_generation: Int64 | None = Field(None, description="The generation of the spec this was found for.")


Conditions = Annotated[list[Condition], keyed_by("type")]


class Status(Model):
    """The status of a kind. Every kind with a controller has these."""

    conditions: Conditions | None = Field(None, description="What is known about the object, one entry a type.")
    observed_generation: Int64 | None = Field(
        None, description="The newest generation of the spec that the service has acted on."
    )
