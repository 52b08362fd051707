"""Which cluster this is: the uid of namespace kube-system, the customary identity of a cluster.

Resource versions compare within one cluster only. When another one answers under the same address (a development
cluster that was made anew, a moved endpoint), everything the stream holds is of the past but looks like the future; the
sync markers carry the uid, so that it is noticed.

The same cluster may have gone back to an earlier state: restored from a backup, or brought up again without its last writes.
Where its versions went on from above what they were (etcd's `--bump-revision`, as Kubernetes asks for), one object is proof: in a
list of version V it is older than the state the stream has of it, which is not newer than V. Then the stream begins anew as
well. Without that, lists stay "older than what was seen" until the versions have caught up or a person deletes the stream.
"""

from __future__ import annotations

from gryvia_common.errors import GryviaError, Terminal
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import uid_of
from gryvia_common.kube.resources import NAMESPACES


class ClusterChanged(Exception):
    """Another cluster answers: the term begins anew."""


class WentBack(ClusterChanged):
    """The same cluster, at an earlier state: what the stream holds never was."""


class Cluster:
    """`uid` is empty when we may not read it; then nothing is ever noticed."""

    def __init__(self, kube: Kube, uid: str) -> None:
        self._kube = kube
        self.uid = uid

    @classmethod
    async def identify(cls, kube: Kube) -> Cluster:
        """Raises Transient or Gone: not a cluster that could be watched yet."""
        try:
            return cls(kube, uid_of(await kube.get(NAMESPACES, "", "kube-system")))
        except Terminal:
            return cls(kube, "")

    async def confirm(self) -> None:
        """Raises ClusterChanged. One small request, before each list."""
        if not self.uid:
            return
        try:
            now = await Cluster.identify(self._kube)
        except GryviaError:
            return  # the list that follows meets the same trouble and deals with it
        if now.uid and now.uid != self.uid:
            raise ClusterChanged(f"the cluster is {now.uid}, it was {self.uid}")
