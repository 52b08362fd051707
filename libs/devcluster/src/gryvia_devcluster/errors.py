"""What the stand-in answers when it refuses: one error that is a Kubernetes Status.

Every layer below the HTTP server raises ApiError and nothing else on purpose, so that a controller in this process and a
client over HTTP see the same refusal. The reasons and codes are those of k8s.io/apimachinery's api/errors package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CODES = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Expired": 410,
    "RequestEntityTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    # What the real server has not put a name to: a bare Go error, on the wire without a reason.
    "": 500,
    "Timeout": 504,
}


@dataclass(slots=True)
class ApiError(Exception):
    """A refusal: `reason` is a key of CODES; `causes` are Status causes (`reason`, `message`, `field`).

    `details` {} is sent and None is not; `warnings` go with the refusal. `list_metadata` is the Status's ListMeta: an expired
    list hands a continue token for an inconsistent rest there.
    """

    reason: str
    message: str
    causes: list[dict[str, str]] = field(default_factory=list)
    details: dict[str, Any] | None = None
    list_metadata: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        return CODES[self.reason]

    def status(self) -> dict[str, Any]:
        """The metav1.Status body that goes over the wire."""
        details = dict(self.details or {})
        if self.causes:
            details["causes"] = self.causes
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_metadata,
            "status": "Failure",
            "message": self.message,
            **({"reason": self.reason} if self.reason else {}),
            "code": self.code,
            **({"details": details} if details or self.details is not None else {}),
        }

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"
