"""GryviaVectorIndex: a dataset's text, cut, embedded and searchable through the LLM gateway."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gryvia_common.kinds.core import SecretRef
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import Bool, Cel, Int32, Int64, QuantityText, Time

IndexPhase = Literal["Pending", "Provisioning", "Ingesting", "Ready", "Failed"]


class Embedding(Model):
    """How text becomes a vector."""

    model: str = Field(min_length=1, description="LLM gateway model for embeddings.")
    batch_size: Int32 = Field(32, ge=1, le=1024, description="Chunks per request. Default 32.")


class Chunking(Model):
    """How documents are cut."""

    size: Int32 = Field(1000, ge=50, le=20000, description="Characters per chunk. Default 1000.")
    overlap: Int32 = Field(
        0,
        ge=0,
        description="Characters that neighbours share, less than size. Default 0; 200 without a chunking block.",
    )

    rules = (
        Cel(
            "(has(self.overlap) ? self.overlap : 0) < (has(self.size) ? self.size : 1000)",
            "chunking.overlap must be less than chunking.size",
        ),
    )


class ManagedStore(Model):
    """A Qdrant of the index's own."""

    image: str | None = Field(None, description="Qdrant image. Default by setting.")
    storage_size: QuantityText = Field("10Gi", description="Size of its volume. Default 10Gi.")
    storage_class: str | None = Field(None, description="Class of its volume. Default the cluster's.")


class ExternalStore(Model):
    """A Qdrant that is there already."""

    url: str = Field(pattern=r"^https?://[^\s]+$", description="Qdrant HTTP API.")
    api_key_secret_ref: SecretRef | None = Field(None, description="Secret with the store's key.")


class Store(Model):
    """Where the vectors are."""

    type: Literal["managed", "external"] = Field(description="Vector store kind.")
    managed: ManagedStore | None = Field(None, description="For type managed.")
    external: ExternalStore | None = Field(None, description="For type external.")


class Retrieval(Model):
    """How the index is searched."""

    mode: Literal["dense", "sparse", "hybrid"] | None = Field(
        None, description="By vectors, by words, or both with reciprocal rank fusion. Default dense."
    )


class GoldenQuery(Model):
    """A question with its known answer."""

    query: str = Field(min_length=1, description="What is asked.")
    source: str = Field(min_length=1, description="Document that must be among the results.")
    top_k: Int32 | None = Field(None, ge=1, le=50, description="Among how many results. Default 5.")


class QualityGate(Model):
    """What a new ingestion must fulfil before queries go to it."""

    min_documents: Int64 | None = Field(None, ge=0, description="Fewest documents.")
    golden_queries: list[GoldenQuery] | None = Field(None, description="Questions that must find their document.")


class GryviaVectorIndexSpec(Spec):
    """The spec of a GryviaVectorIndex."""

    dataset_ref: str = Field(min_length=1, description="GryviaDataset materialised in this namespace.")
    embedding: Embedding = Field(description="How text becomes a vector.")
    chunking: Chunking = Field(Chunking(size=1000, overlap=200), description="How documents are cut.")
    store: Store = Field(description="Where the vectors are.")
    collection: str | None = Field(
        None, pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]{0,62})?$", description="Query alias. Default the name of the index."
    )
    schedule: str | None = Field(None, description="Five-field cron expression in UTC: rebuild without a change.")
    suspend: Bool = Field(False, description="Stop ingestion, keep serving. Default false.")
    ingest_image: str | None = Field(None, description="Ingestion image. Default by setting.")
    retrieval: Retrieval | None = Field(None, description="How the index is searched.")
    quality_gate: QualityGate | None = Field(None, description="Checked before queries go to a new ingestion.")


class GryviaVectorIndexStatus(Status):
    """The status of a GryviaVectorIndex."""

    phase: IndexPhase | None = Field(None, description="Where the index is.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    store_url: str | None = Field(None, alias="storeURL", description="Vector store.")
    collection: str | None = Field(None, description="Query alias.")
    documents: Int64 | None = Field(None, description="Documents of the last ingestion.")
    chunks: Int64 | None = Field(None, description="Chunks of the last ingestion.")
    dimensions: Int64 | None = Field(None, description="Dimensions of its vectors.")
    embedded_chunks: Int64 | None = Field(None, description="Chunks the last ingestion had to embed anew.")
    dataset_version: str | None = Field(None, description="Dataset version served.")
    last_ingested: Time | None = Field(None, description="Last ingestion.")
    ingest_job: str | None = Field(None, description="Current or last Job.")
    ingested_generation: Int64 | None = Field(None, description="Generation of the spec that was ingested.")
    ingested_request: str | None = Field(None, description="Value of the reingest annotation that was carried out.")
    next_schedule_time: Time | None = Field(None, description="Next rebuild by schedule.")
    key_secret: str | None = Field(None, description="Secret with its gateway key.")


VECTOR_INDEX = Kind(
    name="GryviaVectorIndex",
    plural="gryviavectorindexes",
    spec=GryviaVectorIndexSpec,
    status=GryviaVectorIndexStatus,
    summary="A dataset's text, cut, embedded and searchable through the LLM gateway.",
    short_names=("gvi",),
    columns=(
        Column("Dataset", ".spec.datasetRef"),
        Column("Model", ".spec.embedding.model"),
        Column("Phase", ".status.phase"),
        Column("Chunks", ".status.chunks", "integer"),
        AGE,
    ),
    label="vector-index",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaVectorIndex
metadata:
  name: handbook
spec:
  datasetRef: handbook
  embedding:
    model: bge-small
  chunking:
    size: 800
    overlap: 100
  store:
    type: managed
    managed:
      storageSize: 5Gi
  retrieval:
    mode: hybrid
  qualityGate:
    minDocuments: 10
    goldenQueries:
      - query: How many days of leave are there?
        source: leave.md
""",
        conditions=(
            ("StoreReady", "Ready or NotReady."),
            ("Ingested", "Ingested or IngestFailed."),
        ),
        children=(
            ("Service and StatefulSet `<index>-qdrant`", "With a managed store."),
            ("Job `<index>-ingest-<hash>`", "One ingestion."),
            ("Secret `<index>-llm-key`", "Its gateway key."),
        ),
        labels=(
            ("vector-index", "Name of the index."),
            ("component", "vector-store."),
        ),
        annotations=(("reingest", "Ingest again; any new value."),),
        notes=("The finalizer `gryvia.io/vector-index` removes its key from the key namespace.",),
    ),
)
