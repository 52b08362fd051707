"""Who a person is, for a decision that is written down with a name: the user as whom the API server knows them.

On a cluster with deploy/admission nobody can write down another name than their own. A server without SelfSubjectReview (Kubernetes
before 1.28) gives no name; then it is the name of the login here, and the command says so.
"""

from __future__ import annotations

import getpass

from gryvia_common.errors import Gone, Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.kube.resources import Resource

SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)


async def who_am_i(kube: Kube) -> tuple[str, bool]:
    """The name, and whether it is the API server's word."""
    body = {"apiVersion": SELF_SUBJECT_REVIEWS.api_version, "kind": SELF_SUBJECT_REVIEWS.kind}
    try:
        answer = await kube.create(SELF_SUBJECT_REVIEWS, body)
    except (Gone, Terminal):
        return getpass.getuser(), False
    name = ((answer.get("status") or {}).get("userInfo") or {}).get("username")
    return (str(name), True) if name else (getpass.getuser(), False)
