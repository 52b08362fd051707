"""A webhook step: one HTTP call, as an action beside the passes; its answer comes back as an observation.

Every try of an attempt carries the same `Idempotency-Key: <workflow uid>/<run>/<step>/<item or ->/<attempt>`, because a call whose
answer was lost (the service ended meanwhile) is sent again: whoever must not act twice can tell by it. Users choose the URL, so it
goes through gryvia_common.outbound. Messages name the origin alone: paths, queries and headers of webhooks are often secrets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from gryvia_common.errors import GryviaError, Terminal
from gryvia_common.outbound.client import Call, Limits, Outbound
from gryvia_common.outbound.target import parse_target, shown
from gryvia_common.runtime.controller import ActionContext
from gryvia_common.runtime.plan import Action
from gryvia_pipelines.webhooks import success_status
from gryvia_workflow.attempts import Attempt, End, Progress
from gryvia_workflow.run import cut

CALL = "webhook"
KEY_HEADER = "Idempotency-Key"
LIMITS = Limits(seconds=10.0, body=64 * 1024)
LONGEST_OUTPUT = 4096
REMEMBERED = 256
DISABLED = (
    "webhook steps are switched off here: the operator can allow them with GRYVIA_WORKFLOW_ALLOW_WEBHOOKS=true"
    " (--workflow-allow-webhooks)"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a call. `error`: there was no answer; `final`: there would be none the next time either."""

    status: int = 0
    body: str = ""
    error: str = ""
    final: bool = False


def advance(attempt: Attempt, *, allowed: bool) -> Progress:
    if not allowed:
        return Progress(End("failed", DISABLED, final=True))
    payload = attempt.payload()
    item = "-" if attempt.task.index is None else str(attempt.task.index)
    place = f"{attempt.run}/{attempt.step.name}/{item}/{attempt.task.attempt}"
    try:
        origin, expected = shown(parse_target(str(payload.get("url") or ""))), _expected(payload)
    except Terminal as error:
        return Progress(End("failed", f"webhook: {error}", final=True))
    seen = attempt.world.observation(f"{CALL}/{place}")
    if seen is None:
        arguments = {**payload, "expected": expected, "key": f"{attempt.workflow.uid}/{place}"}
        return Progress(message=f"calls {origin}", actions=(Action(CALL, f"{CALL}/{place}", arguments),))
    answer = seen.value if isinstance(seen.value, Answered) else Answered(error=seen.error or "no answer")
    if answer.error:
        return Progress(End("failed", f"webhook: {answer.error}", final=answer.final))
    outputs = {"status": str(answer.status), "body": answer.body}
    if answer.status == expected if expected else 200 <= answer.status < 300:
        return Progress(End("succeeded", f"{origin} answered {answer.status}", outputs=outputs))
    return Progress(End("failed", f"webhook: {origin} answered {answer.status}, not {expected or '2xx'}"))


class Caller:
    """The runner. What goes wrong is its answer: whether to try again is the step's to say. An answer is remembered for as long as
    the process lives: the runtime asks again when it lost the API server meanwhile, and that is no reason to call twice."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._answers: OrderedDict[str, Answered] = OrderedDict()

    async def __call__(self, context: ActionContext, arguments: Mapping[str, object]) -> Answered:
        key = str(arguments["key"])
        if key not in self._answers:
            try:
                answer = await self._outbound.send(_call(arguments), LIMITS)
            except GryviaError as error:
                return Answered(error=str(error), final=isinstance(error, Terminal))
            text = answer.body.decode(errors="replace").replace("\0", "\ufffd")
            self._answers[key] = Answered(answer.status, cut(text, LONGEST_OUTPUT))
            while len(self._answers) > REMEMBERED:
                self._answers.popitem(last=False)
        return self._answers[key]


def _call(arguments: Mapping[str, object]) -> Call:
    given, headers = arguments.get("body"), arguments.get("headers")
    body = None if given is None else str(given)
    sent = {str(name): str(value) for name, value in headers.items()} if isinstance(headers, Mapping) else {}
    named = {name.lower() for name in sent}
    if KEY_HEADER.lower() not in named:
        sent[KEY_HEADER] = str(arguments["key"])
    if body is not None and "content-type" not in named:
        sent["Content-Type"] = "application/json" if body.lstrip()[:1] in ("{", "[") else "text/plain; charset=utf-8"
    expected = arguments.get("expected")
    return Call(
        url=str(arguments["url"]),
        method=str(arguments.get("method") or "POST"),
        headers=sent,
        body=None if body is None else body.encode(),
        keep=frozenset([expected] if isinstance(expected, int) else []),
    )


def _expected(payload: Mapping[str, object]) -> int:
    """The status that counts as success; 0: any 2xx."""
    condition = payload.get("successCondition")
    if condition is None:
        return 0
    status = success_status(str(condition))
    if status is None:
        raise Terminal(f'successCondition "{str(condition)[:80]}" is not understood; use status == <code>')
    return status
