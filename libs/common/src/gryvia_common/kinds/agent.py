"""GryviaAgent: a model with tools behind a chat endpoint."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gryvia_common.kinds.core import ResourceRequirements
from gryvia_common.kinds.kind import AGE, Column, Kind, Reference, Scale
from gryvia_common.kinds.model import Model, Spec, Status
from gryvia_common.kinds.wire import SCHEMA_DEFAULT, Bool, Int32, Int64


class RetrievalTool(Model):
    """Asks a vector index."""

    vector_index_ref: str = Field(min_length=1, description="Index in the same namespace.")
    top_k: Annotated[Int32, SCHEMA_DEFAULT] = Field(4, ge=1, le=20, description="Chunks returned.")


class HttpTool(Model):
    """Calls a URL."""

    urls: list[str] = Field(min_length=1, description="Allowed URL prefixes.")
    method: Annotated[Literal["GET", "POST"], SCHEMA_DEFAULT] = Field("GET", description="HTTP method.")
    allowed_cidrs: list[str] | None = Field(
        None, alias="allowedCIDRs", description="Private address ranges it may reach; none when left out."
    )
    timeout_seconds: Int32 | None = Field(None, ge=1, le=600, description="Longest time of a call. Default 30.")
    max_bytes: Int32 | None = Field(None, ge=1, description="Largest answer read. Default 1048576.")


class McpTool(Model):
    """The tools of an MCP server (streamable HTTP)."""

    url: str = Field(pattern=r"^https?://[^\s]+$", description="Its endpoint.")
    allowed_tools: list[str] | None = Field(None, description="Tools of it that are offered. Default all.")


class Tool(Model):
    """A function, or a set of functions, offered to the model."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", description="Function name, unique.")
    description: str | None = Field(None, description="When to use it.")
    type: Literal["retrieval", "http", "mcp"] = Field(description="Tool kind.")
    retrieval: RetrievalTool | None = Field(None, description="For type retrieval.")
    http: HttpTool | None = Field(None, description="For type http.")
    mcp: McpTool | None = Field(None, description="For type mcp.")
    require_approval: Bool | None = Field(None, description="Wait for a person before each call.")


class GryviaAgentSpec(Spec):
    """The spec of a GryviaAgent."""

    model: str = Field(min_length=1, description="LLM gateway model with tool calling.")
    system_prompt: str | None = Field(None, description="Prepended to each conversation.")
    tools: list[Tool] | None = Field(None, max_length=16, description="Functions offered to the model.")
    max_steps: Annotated[Int32, SCHEMA_DEFAULT] = Field(5, ge=1, le=20, description="Model calls per request.")
    replicas: Annotated[Int32, SCHEMA_DEFAULT] = Field(1, ge=0, le=20, description="Runtime pods; 0 scales down.")
    image: str | None = Field(None, description="Own runtime image.")
    resources: ResourceRequirements | None = Field(
        None, description="Resources of the runtime. Default 50m CPU and 128Mi requested."
    )
    max_tokens: Int64 | None = Field(None, ge=1, description="Most tokens per request, over all its steps.")
    max_seconds: Int32 | None = Field(None, ge=1, description="Longest time per request.")
    max_repeated_calls: Int32 | None = Field(
        None, ge=1, description="End the request when one tool is called this often with the same arguments. Default 3."
    )


class GryviaAgentStatus(Status):
    """The status of a GryviaAgent."""

    phase: Literal["Pending", "Ready", "Failed"] | None = Field(None, description="Where the agent is.")
    message: str | None = Field(None, description="Why the phase is what it is.")
    endpoint: str | None = Field(None, description="Address inside the cluster.")
    ready_replicas: Int32 | None = Field(None, description="Ready pods.")
    selector: str | None = Field(None, description="Label selector of its pods, for the scale subresource.")
    key_secret: str | None = Field(None, description="Secret with its gateway key.")


AGENT = Kind(
    name="GryviaAgent",
    plural="gryviaagents",
    spec=GryviaAgentSpec,
    status=GryviaAgentStatus,
    summary="A model with tools behind a chat endpoint.",
    short_names=("gag",),
    columns=(
        Column("Model", ".spec.model"),
        Column("Phase", ".status.phase"),
        Column("Ready", ".status.readyReplicas", "integer"),
        AGE,
    ),
    scale=Scale(".spec.replicas", ".status.readyReplicas", ".status.selector"),
    label="agent",
    reference=Reference(
        example="""
apiVersion: gryvia.io/v1alpha1
kind: GryviaAgent
metadata:
  name: helpdesk
spec:
  model: chat
  systemPrompt: Answer from the handbook.
  tools:
    - name: handbook
      description: Company rules
      type: retrieval
      retrieval:
        vectorIndexRef: handbook
    - name: tickets
      type: mcp
      mcp:
        url: http://tickets.support.svc.cluster.local:8080/mcp
      requireApproval: true
  maxTokens: 20000
""",
        conditions=(
            ("ToolsResolved", "Resolved or IndexNotFound."),
            ("Available", "Ready, Starting or ScaledToZero."),
        ),
        children=(
            ("ConfigMap, NetworkPolicy, Service and Deployment `<agent>-agent`", "The runtime."),
            ("Secret `<agent>-llm-key`", "Its gateway key."),
        ),
        labels=(
            ("agent", "Name of the agent."),
            ("component", "agent."),
        ),
        annotations=(("agent-config-hash", "On the pod template: rolls the pods when the configuration changes."),),
        notes=("The finalizer `gryvia.io/agent` removes its key from the key namespace.",),
    ),
)
