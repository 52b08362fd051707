"""The base models of the contract: camelCase on the wire, snake_case in code.

A Spec refuses nothing it does not know (an old service must read a newer object; the API server prunes unknown fields);
a Status is what a service writes: None and empty values are left out, so that equal states are equal JSON.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """Any part of the contract. Fields are snake_case; the wire name is camelCase unless an alias says otherwise."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    def wire(self) -> dict[str, Any]:
        """JSON as it is written to the API server: by alias, without None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Spec(Model):
    """The spec of a kind."""


class Condition(Model):
    """metav1.Condition."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str
    observed_generation: int | None = None


class Status(Model):
    """The status of a kind. Every kind with a controller has these."""

    conditions: list[Condition] | None = None
    observed_generation: int | None = None
