"""Webhook steps: the real runner against a real server, in a workflow that is carried out pass by pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from aiohttp import web

from gryvia_common.errors import Terminal
from gryvia_common.kube.objects import Json
from gryvia_common.runtime.world import Observation
from gryvia_workflow.controller import controller
from gryvia_workflow.settings import WorkflowSettings
from gryvia_workflow.steps.webhook import Answered

ALLOWED = WorkflowSettings(workflow_allow_webhooks=True, workflow_webhook_allowed="127.0.0.1, localhost:1")


@dataclass
class Hook:
    """A server that answers what the test says, and keeps what arrived."""

    url: str = ""
    status: int = 200
    body: bytes = b'{"ok": true}'
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.seen.append((request.method, dict(request.headers), await request.read()))
        return web.Response(status=self.status, body=self.body, headers=self.headers)


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    found = Hook()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}/services/path-secret?token=query-secret"
    yield found
    await runner.cleanup()


async def act(cluster: Any) -> None:
    """The runtime's part: every wanted action runs, and its answer starts another pass."""
    while cluster.wanted.keys() - cluster.observations.keys():
        for key in cluster.wanted.keys() - cluster.observations.keys():
            action = cluster.wanted[key]
            context = SimpleNamespace(raw=cluster.raw, previous=None)
            answer = await cluster.controller.actions[action.name](context, action.arguments)
            cluster.observations[key] = Observation(cluster.now, answer)
        cluster.settle()


def step(hook: Hook, **fields: object) -> Json:
    return {"name": "tell", "webhook": {"url": hook.url, **fields}}


Make = Callable[..., Any]


async def test_a_call_that_is_answered_succeeds_with_status_and_body_as_outputs(workflow: Make, hook: Hook) -> None:
    hook.body = '{"id": "ü"}'.encode()
    cluster = workflow(step(hook, body='{"text": "done"}', headers={"X-Team": "ml"}), settings=ALLOWED)
    assert (cluster.phases, cluster.steps["tell"]["message"]) == (
        {"tell": "Running"},
        f"calls {hook.url.split('/services')[0]}",
    )
    await act(cluster)
    assert cluster.phase == "Succeeded"
    assert cluster.steps["tell"]["outputs"] == {"status": "200", "body": '{"id": "ü"}'}
    ((method, headers, body),) = hook.seen
    assert (method, body, headers["X-Team"], headers["Content-Type"]) == (
        "POST",
        b'{"text": "done"}',
        "ml",
        "application/json",
    )
    assert headers["Idempotency-Key"] == "uid-1/0/tell/-/0"
    assert cluster.writes["status"] == 2


async def test_outputs_of_a_call_reach_later_steps_and_placeholders_its_payload(workflow: Make, hook: Hook) -> None:
    hook.body = b"build-7"
    first = step(hook, method="PUT", body="{{parameters.WHAT}}", headers={"X-What": "{{parameters.WHAT}}"})
    then: Json = {
        "name": "then",
        "dependsOn": ["tell"],
        "webhook": {"url": f"{hook.url}&n={{{{steps.tell.outputs.body}}}}", "method": "GET"},
    }
    cluster = workflow(first, then, settings=ALLOWED, parameters={"WHAT": "tea"})
    await act(cluster)
    assert cluster.phase == "Succeeded"
    assert [(method, headers.get("X-What"), body) for method, headers, body in hook.seen] == [
        ("PUT", "tea", b"tea"),
        ("GET", None, b""),
    ]


@pytest.mark.parametrize(
    ("status", "condition", "phase"),
    [(200, None, "Succeeded"), (204, None, "Succeeded"), (299, None, "Succeeded"), (404, None, "Failed"), (500, None, "Failed"),
     (404, "status == 404", "Succeeded"), (200, "status==404", "Failed"), (302, "status == 302", "Succeeded"),
     (200, " status  ==  200 ", "Succeeded")],
)  # fmt: skip
async def test_what_counts_as_success(
    workflow: Make, hook: Hook, status: int, condition: str | None, phase: str
) -> None:
    hook.status, hook.body = status, b""
    if status == 302:
        hook.headers = {"Location": "http://169.254.169.254/"}
    cluster = workflow(step(hook, **({"successCondition": condition} if condition else {})), settings=ALLOWED)
    await act(cluster)
    assert cluster.phase == phase
    if phase == "Failed":
        wanted = "404" if condition else "2xx"
        assert (
            cluster.steps["tell"]["message"]
            == f"webhook: {hook.url.split('/services')[0]} answered {status}, not {wanted}"
        )


async def test_each_attempt_has_a_key_of_its_own_and_each_try_of_one_the_same(workflow: Make, hook: Hook) -> None:
    hook.status = 503
    cluster = workflow(step(hook) | {"retries": 1}, settings=ALLOWED)
    key, action = next(iter(cluster.wanted.items()))
    for _ in range(2):
        await cluster.controller.actions[action.name](SimpleNamespace(), action.arguments)
    assert len(hook.seen) == 1, "one process calls once for an answer, however often it is asked"
    cluster.restart()
    cluster.settle()
    assert list(cluster.wanted) == [key], "its answer was lost with the process: the call is made again"
    await act(cluster)
    keys = [headers["Idempotency-Key"] for _, headers, _ in hook.seen]
    assert keys == ["uid-1/0/tell/-/0", "uid-1/0/tell/-/0", "uid-1/0/tell/-/1"]
    assert cluster.steps["tell"]["retriesAttempted"] == 1


async def test_items_have_keys_of_their_own(workflow: Make, hook: Hook) -> None:
    cluster = workflow(step(hook, body="{{item}}") | {"withItems": ["a", "b"]}, settings=ALLOWED)
    await act(cluster)
    assert cluster.phase == "Succeeded"
    assert sorted((headers["Idempotency-Key"], body) for _, headers, body in hook.seen) == [
        ("uid-1/0/tell/0/0", b"a"),
        ("uid-1/0/tell/1/0", b"b"),
    ]


async def test_a_key_of_the_users_own_is_kept(workflow: Make, hook: Hook) -> None:
    cluster = workflow(
        step(hook, headers={"idempotency-key": "mine", "content-type": "text/x"}, body="{}"), settings=ALLOWED
    )
    await act(cluster)
    ((_, headers, _),) = hook.seen
    found = [
        (name.lower(), value) for name, value in headers.items() if name.lower() in ("idempotency-key", "content-type")
    ]
    assert sorted(found) == [("content-type", "text/x"), ("idempotency-key", "mine")]


async def test_switched_off_it_fails_at_once_and_without_retries(workflow: Make, hook: Hook) -> None:
    cluster = workflow(step(hook) | {"retries": 5})
    assert cluster.phase == "Failed"
    assert "GRYVIA_WORKFLOW_ALLOW_WEBHOOKS=true" in cluster.steps["tell"]["message"]
    assert "retriesAttempted" not in cluster.steps["tell"]
    assert (cluster.wanted, hook.seen) == ({}, [])


async def test_a_place_that_may_not_be_called_fails_without_retries(workflow: Make, hook: Hook) -> None:
    settings = WorkflowSettings(workflow_allow_webhooks=True)
    cluster = workflow(step(hook) | {"retries": 5}, settings=settings)
    await act(cluster)
    origin = hook.url.split("/services")[0]
    assert cluster.steps["tell"]["message"] == f"webhook: {origin} may not be called: its address is loopback"
    assert (cluster.phase, "retriesAttempted" in cluster.steps["tell"], hook.seen) == ("Failed", False, [])


async def test_nobody_there_is_a_failure_that_is_tried_again(workflow: Make, hook: Hook) -> None:
    cluster = workflow({"name": "tell", "retries": 2, "webhook": {"url": "http://localhost:1/x"}}, settings=ALLOWED)
    await act(cluster)
    assert cluster.phase == "Failed"
    assert cluster.steps["tell"]["retriesAttempted"] == 2
    assert cluster.steps["tell"]["message"] == "webhook: http://localhost:1: Connection refused"


async def test_a_long_or_binary_body_becomes_an_output_of_at_most_4096_bytes_of_text(
    workflow: Make, hook: Hook
) -> None:
    hook.body = b"\x00\xff" + "ß".encode() * 50_000
    cluster = workflow(step(hook), settings=ALLOWED)
    observed: list[Answered] = []
    action = next(iter(cluster.wanted.values()))
    observed.append(await cluster.controller.actions[action.name](SimpleNamespace(), action.arguments))
    assert len(observed[0].body.encode()) <= 4096
    assert observed[0].body.startswith("��ß")
    await act(cluster)
    assert cluster.phase == "Succeeded"


async def test_no_secret_of_the_call_is_in_status_events_or_logs(workflow: Make, hook: Hook) -> None:
    with structlog.testing.capture_logs() as logs:
        for status in (200, 500):
            hook.status, hook.body = status, b""
            cluster = workflow(
                step(hook, headers={"Authorization": "Bearer header-secret"}, body="body-secret"), settings=ALLOWED
            )
            await act(cluster)
            shown = f"{cluster.status} {[event.model_dump() for event in cluster.events]} {cluster.records}"
            assert "secret" not in shown
    assert "secret" not in str(logs)


async def test_a_placeholder_can_lead_nowhere_else(workflow: Make, hook: Hook) -> None:
    cluster = workflow(
        {"name": "tell", "webhook": {"url": "http://{{parameters.HOST}}/"}},
        settings=ALLOWED,
        parameters={"HOST": "2852039166"},
    )
    await act(cluster)
    assert cluster.steps["tell"]["message"] == (
        "webhook: http://169.254.169.254 may not be called: its address is the cloud's metadata or link-local"
    )


async def test_a_timeout_of_the_step_ends_a_call_that_is_under_way(workflow: Make, hook: Hook) -> None:
    cluster = workflow(step(hook) | {"timeoutSeconds": 3}, settings=ALLOWED)
    cluster.after(5)
    assert (cluster.phase, cluster.wanted) == ("Failed", {})
    assert cluster.steps["tell"]["message"] == "timed out after 3 s"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"url": ""}, "webhook.url: the URL begins with ''; use http or https"),
        ({"url": "ftp://a/"}, "use http or https"),
        ({"url": "https://u:p@a/"}, "put them into a header instead"),
        ({"headers": {"Host": "x"}}, "webhook.headers: header 'Host' follows from the call itself"),
        ({"headers": {"a b": "x"}}, "is not a name for a header"),
        ({"successCondition": "status >= 200"}, 'webhook.successCondition: "status >= 200" is not understood'),
        ({"successCondition": "status == 999"}, "use status == <code>"),
        ({"successCondition": ""}, "use status == <code>"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(workflow: Make, fields: Json, words: str) -> None:
    cluster = workflow({"name": "tell", "webhook": {"url": "https://a.example/", **fields}}, settings=ALLOWED)
    assert cluster.phase == "Failed"
    assert words in cluster.message
    assert 'step "tell"' in cluster.message


def test_a_bad_exception_ends_the_service_with_a_sentence() -> None:
    with pytest.raises(Terminal, match=r"allowed '\*\.example'"):
        controller(WorkflowSettings(workflow_webhook_allowed="*.example"))
