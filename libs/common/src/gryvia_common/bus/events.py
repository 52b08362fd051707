"""The domain events: one class an event, so that docs/events.md and asyncapi.yaml can be generated from what is really sent.

CloudEvents 1.0. The id is deterministic (uid, generation, transition): a retried emit has the same id, JetStream and every
consumer drop the second one. An event only speeds up what a resync would find too; nothing is decided from an event alone.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class DomainEvent(BaseModel):
    """Something that happened to one object. Subclasses set `noun` and `verb` and add their data fields; the docstring of the
    subclass is its documentation. `transition` tells apart events of one verb and generation (a trial's name, an attempt)."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    noun: ClassVar[str]
    verb: ClassVar[str]

    namespace: str
    name: str
    uid: str
    generation: int
    transition: str = ""

    @property
    def type(self) -> str:
        """`gryvia.<noun>.<verb>`."""
        return f"gryvia.{self.noun}.{self.verb}"

    @property
    def id(self) -> str:
        """Deterministic; never a random number."""
        return "/".join(part for part in (self.uid, str(self.generation), self.noun, self.verb, self.transition) if part)
