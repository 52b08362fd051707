"""GryviaDataset: data fetched once into a claim of its own, checked and versioned, for everyone to mount.

Cluster-scoped. Source types that the service does not fetch (gcs, azure-blob, git-lfs, vast) are part of the contract's
words and answered with the condition Ready=False (InvalidSpec).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Int32, Int64, Number, QuantityText, Time, keyed_by

SourceType = Literal["http", "s3", "nfs", "huggingface", "pvc", "gcs", "azure-blob", "git-lfs", "vast"]


class HttpSource(Model):
    """One file by HTTP."""

    url: str = Field(description="The file, an http or https URL.")
    checksum_url: str | None = Field(None, alias="checksumURL", description="URL of the file's sha256.")


class S3Source(Model):
    """A bucket or a prefix of it."""

    bucket: str = Field(description="Bucket.")
    prefix: str | None = Field(None, description="Key prefix.")
    region: str | None = Field(None, description="Region.")
    endpoint: str | None = Field(
        None, pattern=r"^(https?://[^\s/]+(/[^\s]*)?)?$", description="URL of an S3-compatible service. Default AWS."
    )
    credentials_secret: str | None = Field(
        None, description="Secret in the dataset's namespace with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
    )


class NfsSource(Model):
    """An NFS export."""

    server: str = Field(description="NFS server.")
    path: str = Field(description="Export path, absolute.")


class HuggingFaceSource(Model):
    """A repository of the Hugging Face hub."""

    repo: str = Field(description="Repository, <owner>/<name>.")
    revision: str | None = Field(None, description="Branch, tag or commit. Default main.")
    repo_type: Literal["dataset", "model", "space"] | None = Field(
        None, description="Kind of repository. Default dataset."
    )
    include: list[str] | None = Field(None, description="Globs of the files to fetch. Default all.")
    exclude: list[str] | None = Field(None, description="Globs of the files to leave out.")
    token_secret: str | None = Field(None, description="Secret in the dataset's namespace with HF_TOKEN.")


class ClaimSource(Model):
    """A claim in the dataset's namespace."""

    claim_name: str = Field(description="Claim to copy from.")
    sub_path: str | None = Field(None, description="Path inside it.")


class DatasetSource(Model):
    """Where the data comes from: a type and its block."""

    type: SourceType = Field(description="Source kind: http, s3, nfs, huggingface and pvc work.")
    http: HttpSource | None = Field(None, description="For type http.")
    s3: S3Source | None = Field(None, description="For type s3.")
    nfs: NfsSource | None = Field(None, description="For type nfs.")
    huggingface: HuggingFaceSource | None = Field(None, description="For type huggingface.")
    pvc: ClaimSource | None = Field(None, description="For type pvc.")


class Cache(Model):
    """The claim the data is kept in."""

    size: QuantityText | None = Field(None, description="Size of the claim. Default by setting (10Gi).")
    storage_class: str | None = Field(None, description="Class of the claim.")
    enabled: Bool | None = Field(None, description="No effect.")
    warmup: Bool | None = Field(None, description="No effect.")


class RetentionPolicy(Model):
    """Which old versions are kept."""

    keep_last: Int32 = Field(0, description="Newest versions kept; 0 is all.")
    keep_days: Int32 | None = Field(None, description="No effect.")


class Versioning(Model):
    """More than one version side by side."""

    enabled: Bool = Field(False, description="Keep more than one version. Default false.")
    strategy: Literal["snapshot", "incremental", "git-lfs"] | None = Field(None, description="No effect.")
    retention_policy: RetentionPolicy | None = Field(None, description="Which old versions are kept.")


class Access(Model):
    """Words about access; nothing is enforced."""

    allowed_teams: list[str] | None = Field(None, description="No effect.")
    allowed_users: list[str] | None = Field(None, description="No effect.")
    public: Bool | None = Field(None, description="No effect.")


class Statistics(Model):
    """What the author says about the data."""

    file_count: Int64 | None = Field(None, description="Declared by the author; not checked.")
    sample_count: Int64 | None = Field(None, description="Declared by the author; not checked.")
    total_size_bytes: Int64 | None = Field(None, description="Declared by the author; not checked.")


class GryviaDatasetSpec(Spec):
    """The spec of a GryviaDataset."""

    source: DatasetSource = Field(description="Where the data comes from.")
    type: Literal["image", "text", "audio", "video", "tabular", "multimodal"] | None = Field(
        None, description="Content label."
    )
    description: str | None = Field(None, description="Free text.")
    version: str = Field("latest", description="Version folder: letters, digits, . _ -, 1 to 63. Default latest.")
    license: str | None = Field(None, description="License, shown only.")
    namespace: str | None = Field(
        None,
        pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
        max_length=63,
        description="Namespace of the claim and the jobs. Default by setting.",
    )
    tags: list[str] | None = Field(None, description="Tags, shown only.")
    cache: Cache | None = Field(None, description="The claim the data is kept in.")
    versioning: Versioning | None = Field(None, description="More than one version side by side.")
    access: Access | None = Field(None, description="Words about access; nothing is enforced.")
    statistics: Statistics | None = Field(None, description="What the author says about the data.")
    verify: Bool | None = Field(None, description="Read the stored bytes again and compare them with their checksums.")


class DatasetVersion(Model):
    """One version in the claim."""

    version: str = Field(description="Name of the version.")
    created_at: Time | None = Field(None, description="When it was completed.")
    size: Int64 | None = Field(None, description="Bytes.")
    checksum: str | None = Field(None, description="sha256 over the sorted sums of its files.")
    changes: str | None = Field(None, description="What changed.")


class DatasetUsage(Model):
    """Who uses it."""

    jobs_using: Int32 | None = Field(None, description="Running jobs that mount it.")
    last_used_by: str | None = Field(None, description="Last job that mounted it.")
    total_accesses: Int64 | None = Field(None, description="Jobs that have mounted it.")


class CacheStatus(Model):
    """State of a node cache."""

    cached: Bool | None = Field(None, description="Whether it is cached.")
    hit_rate: Number | None = Field(None, description="Share of reads from the cache.")
    last_access: Time | None = Field(None, description="Last read.")


class GryviaDatasetStatus(Status):
    """The status of a GryviaDataset."""

    state: Literal["initializing", "syncing", "ready", "error"] | None = Field(
        None, description="Where the dataset is."
    )
    message: str | None = Field(None, description="Why the state is what it is.")
    namespace: str | None = Field(None, description="Namespace of the claim.")
    pvc_name: str | None = Field(None, description="Claim to mount.")
    sub_path: str | None = Field(None, description="Path of the current version in the claim.")
    current_version: str | None = Field(None, description="Current version.")
    file_count: Int64 | None = Field(None, description="Files of the current version.")
    total_size_bytes: Int64 | None = Field(None, description="Bytes of the current version.")
    source_hash: str | None = Field(None, description="Source and version last fetched.")
    versions: Annotated[list[DatasetVersion], keyed_by("version")] | None = Field(None, description="Versions kept.")
    usage: DatasetUsage | None = Field(None, description="Who uses it.")
    cache_status: CacheStatus | None = Field(None, description="State of a node cache.")
    attempts: Int32 | None = Field(None, description="Failed transfers of this source in a row.")
    next_attempt_time: Time | None = Field(None, description="When a failed transfer is tried again.")
    verified_at: Time | None = Field(None, description="When the stored bytes were last compared.")


DATASET = Kind(
    name="GryviaDataset",
    plural="gryviadatasets",
    spec=GryviaDatasetSpec,
    status=GryviaDatasetStatus,
    summary="Data fetched once into a claim of its own, checked and versioned, for everyone to mount.",
    namespaced=False,
    columns=(
        Column("Type", ".spec.type"),
        Column("Version", ".status.currentVersion"),
        Column("State", ".status.state"),
        Column("Jobs-Using", ".status.usage.jobsUsing", "integer"),
        AGE,
    ),
    label="dataset",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaDataset
metadata:
  name: wine
spec:
  type: tabular
  version: "2026-01"
  namespace: data
  source:
    type: http
    http:
      url: https://data.example.com/wine.csv
      checksumURL: https://data.example.com/wine.csv.sha256
  cache:
    size: 1Gi
""",
        conditions=(("Ready", "Materialized, Downloading, DownloadFailed, InvalidSpec or UnsupportedAPI."),),
        children=(
            ("PersistentVolumeClaim `dataset-<name>`", "The data; deleted with the dataset."),
            ("Job `dataset-<name>-<hash>`", "One transfer."),
        ),
        labels=(
            ("dataset", "Name of the dataset."),
            ("dataset-source-hash", "Source and version of the transfer."),
        ),
    ),
)
