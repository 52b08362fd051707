"""What a caller may say about a write beyond the object itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

FieldValidation = Literal["Strict", "Warn", "Ignore"]


@dataclass(slots=True)
class WriteOptions:
    """`duplicates` are paths of keys that the body has twice. `warnings` is filled by the write; the HTTP server sends them as
    Warning headers."""

    manager: str = "devcluster"
    dry_run: bool = False
    force: bool = False
    field_validation: FieldValidation = "Ignore"
    duplicates: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
