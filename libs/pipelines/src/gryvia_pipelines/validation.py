"""What is wrong with a workflow, and what of it has no effect: pure, judged before anything is made.

Problems end in phase Failed with condition DAGValid, so each names the step, the field, the value and the fix. What is possible
but does nothing is named in the condition FieldsIgnored. What only a run can show (a missing output, a parameter of a schedule's
later life) is left to the attempt, as the contract says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gryvia_common.kinds.workflow import BLOCKS, GryviaWorkflowSpec, Step, StepType
from gryvia_common.kube.names import is_dns_label
from gryvia_common.kube.objects import Json
from gryvia_pipelines import dag, schedule, webhooks
from gryvia_pipelines.conditions import BadCondition, Compile, Condition
from gryvia_pipelines.dag import Graph, Node
from gryvia_pipelines.placeholders import FORMS, foreign, placeholders, step_named

STEPS_LIMIT = 100
RETRIES_LIMIT = 10
ITEMS_LIMIT = 400
"""Items of all steps of a run, so that the status stays far below what an object may have."""

ENVIRONMENT = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_SUFFIX = re.compile(r"(-i\d+)?(-n\d+)?(-r\d+)?$")
_ATTRIBUTES = {"jobTemplate": "job_template", "register": "register_"}
_LIGHT = ("register", "registry")
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Checked:
    """`problems` empty: the graph, the type of each step, the compiled conditions, and what has no effect."""

    problems: str = ""
    graph: Graph = field(default_factory=lambda: dag.graph(()))
    types: Mapping[str, StepType] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def check(spec: GryviaWorkflowSpec, raw: Json, compile_condition: Compile) -> Checked:
    """`raw`: the spec as it was written; payloads are used as they stand there."""
    names = [step.name for step in spec.steps]
    found = [*_workflow(spec, names), *schedule.problems(spec)]
    types = {step.name: kind for step in spec.steps if (kind := step_type(step)) is not None}
    for step in spec.steps:
        found += [f'step "{step.name}": {text}' for text in _step(step, types.get(step.name), names)]
    nodes = [_node(step) for step in spec.steps]
    found += [f'step "{name}": {text}' for name, text in dag.problems(nodes)]
    if found:
        return Checked(_joined(found))
    graph, conditions = dag.graph(nodes), dict[str, Condition]()
    for step, written in zip(spec.steps, raw["steps"], strict=True):
        found += [f'step "{step.name}": {text}' for text in _references(step, types[step.name], written, graph)]
        if step.condition and step.condition.strip():
            try:
                conditions[step.name] = _condition(step, graph, compile_condition)
            except BadCondition as error:
                found.append(f'step "{step.name}": condition "{step.condition[:80]}": {error}')
    if found:
        return Checked(_joined(found))
    return Checked("", graph, types, conditions, tuple(ignored(spec, types, raw)))


def step_type(step: Step) -> StepType | None:
    """As it says, else by the one block that is set."""
    if step.type is not None:
        return step.type
    given = [kind for kind in BLOCKS if _block(step, kind) is not None]
    if len(given) == 1:
        return given[0]
    return "approval" if not given and step.approvers is not None else None


def ignored(spec: GryviaWorkflowSpec, types: Mapping[str, StepType], raw: Json) -> Iterator[str]:
    """The fields that have no effect in this combination, each with the reason."""
    for step, written in zip(spec.steps, raw["steps"], strict=True):
        kind = types[step.name]
        for text in _without_effect(step, kind):
            yield f"step {step.name}: {text}"
        for path in foreign(_payload(written, kind)):
            yield f"step {step.name}: {{{{{path}}}}} is no placeholder of a workflow and stays as it is; there are {FORMS}"
        env = ((written.get("jobTemplate") or {}).get("env")) or () if kind == "job" else ()
        own = {"WORKFLOW_NAME", "WORKFLOW_STEP", *(spec.parameters or {})}
        for name in (variable.get("name") for variable in env):
            if name in own:
                yield f"step {step.name}: jobTemplate.env {name}: the workflow sets it"


def _without_effect(step: Step, kind: StepType) -> Iterator[str]:
    if step.retries == 0:
        for name, value in (
            ("retryBackoffSeconds", step.retry_backoff_seconds),
            ("retryBackoffFactor", step.retry_backoff_factor),
            ("retryBackoffMaxSeconds", step.retry_backoff_max_seconds),
        ):
            if value:
                yield f"{name}: retries is 0, so no attempt follows another"
    elif step.retry_backoff_seconds <= 0 and (step.retry_backoff_factor or step.retry_backoff_max_seconds):
        yield "retryBackoffFactor, retryBackoffMaxSeconds: retryBackoffSeconds is 0, so there is no wait"
    if step.timeout_seconds and kind in _LIGHT:
        yield f"timeoutSeconds: a {kind} step is one request and does not run on"
    if step.approvers and kind != "approval":
        yield f"approvers: the step is of type {kind}, only an approval step waits for a person"
    if step.retries and kind == "approval":
        yield "retries: an approval is asked for once; give it more timeoutSeconds"


def _workflow(spec: GryviaWorkflowSpec, names: list[str]) -> Iterator[str]:
    if not 1 <= len(names) <= STEPS_LIMIT:
        yield f"spec.steps: {len(names)} steps; a workflow has 1 to {STEPS_LIMIT}"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f'spec.steps: the name "{name}" is used {names.count(name)} times; each step needs its own'
    for name in spec.parameters or {}:
        if ENVIRONMENT.fullmatch(name) is None:
            yield f'spec.parameters: "{name}" cannot name an environment variable; use letters, digits, "_", "-" and "."'


def _step(step: Step, kind: StepType | None, names: list[str]) -> Iterator[str]:
    if not is_dns_label(step.name):
        yield "name is no DNS label; use a-z, 0-9 and '-', begin and end with a letter or digit, 63 characters at most"
    for end in range(len(step.name)):
        other = step.name[:end]
        if other in names and _SUFFIX.fullmatch(step.name[end:]):
            yield f'name: attempts of step "{other}" may have the same names; call it something else'
    if not 0 <= step.retries <= RETRIES_LIMIT:
        yield f"retries: {step.retries} must be 0 to {RETRIES_LIMIT}"
    if step.retry_backoff_seconds < 0:
        yield f"retryBackoffSeconds: {step.retry_backoff_seconds} must be 0 or more"
    if step.timeout_seconds < 0:
        yield f"timeoutSeconds: {step.timeout_seconds} must be 0 (none) or more"
    yield from _type(step, kind)
    if kind == "script" and step.script is not None and not step.script.command:
        yield 'script.command: empty; say what to run, for example ["python", "-c", "print(1)"]'
    if kind == "job" and step.job_template is not None:
        yield from _job(step)
    if kind == "approval" and len(step.name) > 54:
        yield "name: an approval step has at most 54 characters, its answer is the annotation gryvia.io/approval-<step>"
    if kind == "webhook" and step.webhook is not None:
        yield from webhooks.problems(step.webhook)
    if step.with_items is not None and kind == "approval":
        yield "withItems: an approval step asks one question; make one step for each"


def _type(step: Step, kind: StepType | None) -> Iterator[str]:
    given = [(one, block) for one, block in BLOCKS.items() if _block(step, one) is not None]
    if kind is None and not given:
        yield f"nothing to do; set one of {', '.join(BLOCKS.values())}, or type: approval"
    elif kind is None:
        yield f"{' and '.join(block for _, block in given)} are set; a step does one thing, remove all but one"
    else:
        if kind in BLOCKS and BLOCKS[kind] not in (block for _, block in given):
            yield f"type {kind} needs the block {BLOCKS[kind]}; set it"
        for one, block in given:
            if one != kind:
                yield f"{block} does not fit the type {kind}; remove it, or set type {one}"


def _job(step: Step) -> Iterator[str]:
    template = step.job_template
    if template is None:
        return
    if not (template.image or "").strip():
        yield "jobTemplate.image: missing; set the container image of the job"
    if (template.workload_kind or ("statefulset" if template.type == "inference" else "job")) == "statefulset":
        yield (
            "jobTemplate.workloadKind: a statefulset (the default for type inference) never completes, so the step would"
            " never end; set workloadKind job"
        )


def _references(step: Step, kind: StepType, written: Json, graph: Graph) -> Iterator[str]:
    """Placeholders that can never have a value."""
    payload = _payload(written, kind)
    for path in dict.fromkeys([*placeholders(payload), *placeholders(written.get("withItems"))]):
        name, formed = step_named(path)
        if not formed:
            yield f"{{{{{path}}}}} is no placeholder; there are {FORMS}"
        elif name and name not in graph.nodes:
            yield f'{{{{{path}}}}}: there is no step "{name}"; the steps are {", ".join(graph.nodes)}'
        elif name and name not in graph.ancestors[step.name]:
            yield f'{{{{{path}}}}}: step "{name}" need not have ended by then; add it to dependsOn'
        elif path.partition(".")[0] == "item" and step.with_items is None:
            yield f"{{{{{path}}}}}: the step has no withItems; set it, or remove the placeholder"
    named = (written.get("register") or {}).get("name")
    if kind == "register" and step.with_items is not None and named and "item" not in str(list(placeholders(named))):
        yield f'register.name: "{named}" is the same for all items; put {{{{item}}}} into it, or leave it out'


def _condition(step: Step, graph: Graph, compile_condition: Compile) -> Condition:
    found = compile_condition(step.condition or "")
    for name in sorted(found.steps):
        if name not in graph.nodes:
            raise BadCondition(f'there is no step "{name}"; the steps are {", ".join(graph.nodes)}')
        if name not in graph.ancestors[step.name]:
            raise BadCondition(f'step "{name}" need not have ended by then; add it to dependsOn')
    return found


def _node(step: Step) -> Node:
    conditional = bool(step.condition and step.condition.strip())
    return Node(step.name, tuple(step.depends_on or ()), conditional, bool(step.finally_))


def _block(step: Step, kind: StepType) -> Any:
    block = BLOCKS[kind]
    return getattr(step, _ATTRIBUTES.get(block, block))


def _payload(written: Json, kind: StepType) -> Json:
    return written.get(BLOCKS.get(kind, "")) or {}


def _joined(found: list[str]) -> str:
    more = len(found) - SHOWN
    return "; ".join(found[:SHOWN] + ([f"and {more} more"] if more > 0 else []))
