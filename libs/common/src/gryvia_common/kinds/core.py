"""The fragments of core/v1 that manifests of ours carry: env, resources, volumes, mounts, tolerations, affinity.

Typed as far as people mistype them, so that `volumeMounts[0].mountPth` is refused by its name; the inside of a rare
volume source and an affinity are left to the pod's own validation. Invariant: a fragment goes out as it came in
(`extra="allow"`), so a field that a newer Kubernetes adds is carried to the pod, not lost.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from gryvia_common.kinds.model import Model
from gryvia_common.kinds.wire import Bool, Int32, Int64, Quantity, keyed_by
from gryvia_common.kube.objects import Json

PullPolicy = Literal["Always", "IfNotPresent", "Never"]
Affinity = Annotated[Json, Field(description="core/v1 Affinity.")]


class Fragment(Model):
    """A part of core/v1: what we do not name is kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)


class FieldSelector(Fragment):
    """A field of the pod, as an env value."""

    api_version: str | None = None
    field_path: str = Field(description="Path of the field, for example metadata.name.")


class ResourceSelector(Fragment):
    """A resource of a container, as an env value."""

    container_name: str | None = None
    resource: str = Field(description="Resource name, for example limits.cpu.")
    divisor: Quantity | None = None


class KeySelector(Fragment):
    """One key of a ConfigMap or Secret in the same namespace."""

    name: str = Field("", description="Name of the ConfigMap or Secret.")
    key: str = Field(description="Key in it.")
    optional: Bool | None = Field(None, description="Whether it may be missing.")


class FileSelector(Fragment):
    """One key of an env file in a volume."""

    volume_name: str
    path: str
    key: str
    optional: Bool | None = None


class EnvSource(Fragment):
    """Where an env value comes from, instead of a literal."""

    field_ref: FieldSelector | None = None
    resource_field_ref: ResourceSelector | None = None
    config_map_key_ref: KeySelector | None = None
    secret_key_ref: KeySelector | None = None
    file_key_ref: FileSelector | None = None


class EnvVar(Fragment):
    """core/v1 EnvVar."""

    see = "core/v1 EnvVar"

    name: str = Field(description="Name of the variable.")
    value: str | None = Field(None, description="Literal value; $(VAR) refers to earlier variables.")
    value_from: EnvSource | None = Field(None, description="Where the value comes from instead.")


class ResourceClaim(Fragment):
    """A claim of the pod that the container uses."""

    name: str
    request: str | None = None


class ResourceRequirements(Fragment):
    """core/v1 ResourceRequirements."""

    see = "core/v1 ResourceRequirements"

    requests: dict[str, Quantity] | None = Field(None, description="What is reserved, by resource name.")
    limits: dict[str, Quantity] | None = Field(None, description="What may be used at most, by resource name.")
    claims: Annotated[list[ResourceClaim], keyed_by("name")] | None = Field(None, description="Claims of the pod.")


class VolumeMount(Fragment):
    """core/v1 VolumeMount."""

    see = "core/v1 VolumeMount"

    name: str = Field(description="Name of the volume.")
    mount_path: str = Field(description="Path in the container.")
    sub_path: str | None = Field(None, description="Path inside the volume.")
    sub_path_expr: str | None = Field(None, description="Path inside the volume with $(VAR) replaced.")
    read_only: Bool | None = Field(None, description="Mount read-only.")
    recursive_read_only: str | None = Field(None, description="Disabled, IfPossible or Enabled.")
    mount_propagation: str | None = Field(None, description="None, HostToContainer or Bidirectional.")


class Toleration(Fragment):
    """core/v1 Toleration."""

    see = "core/v1 Toleration"

    key: str | None = Field(None, description="Taint key; empty with operator Exists matches all.")
    operator: str | None = Field(None, description="Exists or Equal (default).")
    value: str | None = Field(None, description="Taint value.")
    effect: str | None = Field(None, description="NoSchedule, PreferNoSchedule or NoExecute; empty matches all.")
    toleration_seconds: Int64 | None = Field(None, description="How long NoExecute is tolerated.")


class ClaimSource(Fragment):
    """A PersistentVolumeClaim as a volume."""

    claim_name: str = Field(description="Name of the claim in the same namespace.")
    read_only: Bool | None = None


class KeyToPath(Fragment):
    """One key as a file."""

    key: str
    path: str
    mode: Int32 | None = None


class ConfigMapSource(Fragment):
    """A ConfigMap as files."""

    name: str = Field("", description="Name of the ConfigMap in the same namespace.")
    items: list[KeyToPath] | None = None
    default_mode: Int32 | None = None
    optional: Bool | None = None


class SecretSource(Fragment):
    """A Secret as files."""

    secret_name: str | None = Field(None, description="Name of the Secret in the same namespace.")
    items: list[KeyToPath] | None = None
    default_mode: Int32 | None = None
    optional: Bool | None = None


class EmptyDir(Fragment):
    """An empty folder that lives as long as the pod."""

    medium: str | None = Field(None, description="Empty for the node's disk, Memory for RAM.")
    size_limit: Quantity | None = None


class HostPath(Fragment):
    """A path of the node."""

    path: str
    type: str | None = None


class Volume(Fragment):
    """core/v1 Volume: a name and one source."""

    see = "core/v1 Volume"

    name: str = Field(description="Name that volumeMounts refer to.")
    persistent_volume_claim: ClaimSource | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None
    nfs: Json | None = None
    projected: Json | None = None
    downward_api: Json | None = Field(None, alias="downwardAPI")
    csi: Json | None = None
    ephemeral: Json | None = None
    image: Json | None = None
    iscsi: Json | None = None
    fc: Json | None = None
    cephfs: Json | None = None
    rbd: Json | None = None
    flex_volume: Json | None = None
    git_repo: Json | None = None
    glusterfs: Json | None = None
    cinder: Json | None = None
    azure_disk: Json | None = None
    azure_file: Json | None = None
    aws_elastic_block_store: Json | None = Field(None, alias="awsElasticBlockStore")
    gce_persistent_disk: Json | None = Field(None, alias="gcePersistentDisk")
    portworx_volume: Json | None = None
    vsphere_volume: Json | None = None
    flocker: Json | None = None
    photon_persistent_disk: Json | None = None
    quobyte: Json | None = None
    scale_io: Json | None = Field(None, alias="scaleIO")
    storageos: Json | None = None


class SecretRef(Model):
    """One key of a Secret in the same namespace."""

    name: str = Field(description="Name of the Secret.")
    key: str = Field("token", description="Key in it. Default token.")


def wire_list(fragments: list[Any] | None) -> list[Json]:
    """The fragments as JSON for a pod; nothing for None."""
    return [fragment.wire() for fragment in fragments or ()]
