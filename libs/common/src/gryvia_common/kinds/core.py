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


VolumeSource = Annotated[Json, Field(description="As in core/v1 Volume.")]


class Fragment(Model):
    """A part of core/v1: what we do not name is kept."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)


class FieldSelector(Fragment):
    """A field of the pod, as an env value."""

    api_version: str | None = Field(None, description="Version of the path. Default v1.")
    field_path: str = Field(description="Path of the field, for example metadata.name.")


class ResourceSelector(Fragment):
    """A resource of a container, as an env value."""

    container_name: str | None = Field(None, description="Container; needed in volumes.")
    resource: str = Field(description="Resource name, for example limits.cpu.")
    divisor: Quantity | None = Field(None, description="Unit of the value. Default 1.")


class KeySelector(Fragment):
    """One key of a ConfigMap or Secret in the same namespace."""

    name: str = Field("", description="Name of the ConfigMap or Secret.")
    key: str = Field(description="Key in it.")
    optional: Bool | None = Field(None, description="Whether it may be missing.")


class FileSelector(Fragment):
    """One key of an env file in a volume."""

    volume_name: str = Field(description="Volume with the file.")
    path: str = Field(description="Path of the file in it.")
    key: str = Field(description="Variable in the file.")
    optional: Bool | None = Field(None, description="Whether it may be missing.")


class EnvSource(Fragment):
    """Where an env value comes from, instead of a literal."""

    field_ref: FieldSelector | None = Field(None, description="A field of the pod.")
    resource_field_ref: ResourceSelector | None = Field(None, description="A resource of the container.")
    config_map_key_ref: KeySelector | None = Field(None, description="A key of a ConfigMap.")
    secret_key_ref: KeySelector | None = Field(None, description="A key of a Secret.")
    file_key_ref: FileSelector | None = Field(None, description="A variable in a file.")


class EnvVar(Fragment):
    """core/v1 EnvVar."""

    see = "core/v1 EnvVar"

    name: str = Field(description="Name of the variable.")
    value: str | None = Field(None, description="Literal value; $(VAR) refers to earlier variables.")
    value_from: EnvSource | None = Field(None, description="Where the value comes from instead.")


class ResourceClaim(Fragment):
    """A claim of the pod that the container uses."""

    name: str = Field(description="Name of a claim of the pod.")
    request: str | None = Field(None, description="Request in that claim. Default all.")


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
    read_only: Bool | None = Field(None, description="Mount read-only.")


class KeyToPath(Fragment):
    """One key as a file."""

    key: str = Field(description="Key.")
    path: str = Field(description="File, below the mount.")
    mode: Int32 | None = Field(None, description="Permission bits of the file.")


class ConfigMapSource(Fragment):
    """A ConfigMap as files."""

    name: str = Field("", description="Name of the ConfigMap in the same namespace.")
    items: list[KeyToPath] | None = Field(None, description="Keys that become files. Default all.")
    default_mode: Int32 | None = Field(None, description="Permission bits of the files. Default 0644.")
    optional: Bool | None = Field(None, description="Whether it may be missing.")


class SecretSource(Fragment):
    """A Secret as files."""

    secret_name: str | None = Field(None, description="Name of the Secret in the same namespace.")
    items: list[KeyToPath] | None = Field(None, description="Keys that become files. Default all.")
    default_mode: Int32 | None = Field(None, description="Permission bits of the files. Default 0644.")
    optional: Bool | None = Field(None, description="Whether it may be missing.")


class EmptyDir(Fragment):
    """An empty folder that lives as long as the pod."""

    medium: str | None = Field(None, description="Empty for the node's disk, Memory for RAM.")
    size_limit: Quantity | None = Field(None, description="Largest size.")


class HostPath(Fragment):
    """A path of the node."""

    path: str = Field(description="Path on the node.")
    type: str | None = Field(None, description="What must be there, such as Directory.")


class Volume(Fragment):
    """core/v1 Volume: a name and one source."""

    see = "core/v1 Volume"

    name: str = Field(description="Name that volumeMounts refer to.")
    persistent_volume_claim: ClaimSource | None = Field(None, description="A PersistentVolumeClaim.")
    config_map: ConfigMapSource | None = Field(None, description="A ConfigMap as files.")
    secret: SecretSource | None = Field(None, description="A Secret as files.")
    empty_dir: EmptyDir | None = Field(None, description="An empty folder.")
    host_path: HostPath | None = Field(None, description="A path of the node.")
    nfs: VolumeSource | None = None
    projected: VolumeSource | None = None
    downward_api: VolumeSource | None = Field(None, alias="downwardAPI")
    csi: VolumeSource | None = None
    ephemeral: VolumeSource | None = None
    image: VolumeSource | None = None
    iscsi: VolumeSource | None = None
    fc: VolumeSource | None = None
    cephfs: VolumeSource | None = None
    rbd: VolumeSource | None = None
    flex_volume: VolumeSource | None = None
    git_repo: VolumeSource | None = None
    glusterfs: VolumeSource | None = None
    cinder: VolumeSource | None = None
    azure_disk: VolumeSource | None = None
    azure_file: VolumeSource | None = None
    aws_elastic_block_store: VolumeSource | None = Field(None, alias="awsElasticBlockStore")
    gce_persistent_disk: VolumeSource | None = Field(None, alias="gcePersistentDisk")
    portworx_volume: VolumeSource | None = None
    vsphere_volume: VolumeSource | None = None
    flocker: VolumeSource | None = None
    photon_persistent_disk: VolumeSource | None = None
    quobyte: VolumeSource | None = None
    scale_io: VolumeSource | None = Field(None, alias="scaleIO")
    storageos: VolumeSource | None = None


class SecretRef(Model):
    """One key of a Secret in the same namespace."""

    name: str = Field(description="Name of the Secret.")
    key: str = Field("token", description="Key in it. Default token.")


def wire_list(fragments: list[Any] | None) -> list[Json]:
    """The fragments as JSON for a pod; nothing for None."""
    return [fragment.wire() for fragment in fragments or ()]
