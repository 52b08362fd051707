"""Jobs, Deployments and StatefulSets under the cluster's own controllers, with a simulated node to run their pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tools.realcluster.http import MERGE
from tools.realcluster.node import ANNOTATION, Fate, SimulatedNode

from .widgets import JOBS_PATH, PODS_PATH, until

INDEX = "batch.kubernetes.io/job-completion-index"


def template(*, restart: str = "Never", **fate: Any) -> Any:
    return {
        "metadata": {"labels": {"app": "x"}, "annotations": {ANNOTATION: json.dumps(fate)} if fate else {}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i:1"}]},
    }


class Namespace:
    """The objects of one namespace."""

    def __init__(self, api: Any, name: str) -> None:
        self.api = api
        self.name = name

    def path(self, path: str) -> str:
        return path.replace("{ns}", self.name)

    async def create(self, path: str, name: str, **body: Any) -> Any:
        return await self.api.ok("POST", self.path(path), {"metadata": {"name": name}, **body})

    async def get(self, path: str, name: str) -> Any:
        return await self.api.ok("GET", f"{self.path(path)}/{name}")

    async def patch(self, path: str, name: str, body: Any) -> Any:
        return await self.api.ok("PATCH", f"{self.path(path)}/{name}", body, content_type=MERGE)

    async def pods(self) -> list[Any]:
        found = await self.api.ok("GET", self.path(PODS_PATH))
        return sorted(found["items"], key=lambda pod: pod["metadata"]["name"])

    async def job(self, name: str = "j", *, fate: Any = None, **spec: Any) -> Any:
        return await self.create(JOBS_PATH, name, spec={"template": template(**(fate or {})), **spec})

    async def ended(self, name: str = "j") -> tuple[dict[str, Any], Any]:
        """The conditions of an ended job by type, and its status."""

        async def check() -> Any:
            status = (await self.get(JOBS_PATH, name)).get("status") or {}
            conditions = {c["type"]: c for c in status.get("conditions") or () if c["status"] == "True"}
            return (conditions, status) if {"Complete", "Failed"} & conditions.keys() else None

        found: tuple[dict[str, Any], Any] = await until(check)
        return found


@pytest.fixture
def ns(api: Any, namespace: str) -> Namespace:
    return Namespace(api, namespace)


def told(condition: Any) -> tuple[str, str]:
    return condition.get("reason", ""), condition.get("message", "")


async def test_a_job_completes(ns: Namespace, node: SimulatedNode) -> None:
    created = await ns.job(fate={"run": 0.2}, completions=3, parallelism=2)
    assert created["spec"]["backoffLimit"] == 6
    conditions, status = await ns.ended()
    assert told(conditions["SuccessCriteriaMet"]) == ("CompletionsReached", "Reached expected number of succeeded pods")
    assert told(conditions["Complete"]) == ("CompletionsReached", "Reached expected number of succeeded pods")
    assert (status["succeeded"], status.get("failed", 0), status["ready"]) == (3, 0, 0)
    assert status["completionTime"] >= status["startTime"]
    assert "active" not in status
    assert status["uncountedTerminatedPods"] == {}
    pods = await ns.pods()
    assert len(pods) == 3
    [owner] = pods[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"], owner["blockOwnerDeletion"]) == ("Job", True, True)
    assert pods[0]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "j"
    assert not pods[0]["metadata"].get("finalizers")


async def test_an_indexed_job_gives_each_pod_its_index_and_name(ns: Namespace, node: SimulatedNode) -> None:
    await ns.job(fate={"run": 0.1}, completions=3, parallelism=3, completionMode="Indexed")
    _, status = await ns.ended()
    assert status["completedIndexes"] == "0-2"
    pods = await ns.pods()
    assert [pod["metadata"]["annotations"][INDEX] for pod in pods] == ["0", "1", "2"]
    assert [pod["metadata"]["labels"][INDEX] for pod in pods] == ["0", "1", "2"]
    assert [pod["spec"]["hostname"] for pod in pods] == ["j-0", "j-1", "j-2"]
    assert [pod["metadata"]["generateName"] for pod in pods] == ["j-0-", "j-1-", "j-2-"]
    environment = {entry["name"]: entry for entry in pods[0]["spec"]["containers"][0]["env"]}
    source = environment["JOB_COMPLETION_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert source == f"metadata.labels['{INDEX}']"


async def test_a_job_gives_up_at_its_backoff_limit(ns: Namespace, node: SimulatedNode) -> None:
    await ns.job(fate={"exit_code": 3}, backoffLimit=0)
    conditions, status = await ns.ended()
    assert told(conditions["Failed"]) == ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert told(conditions["FailureTarget"]) == told(conditions["Failed"])
    assert status["failed"] == 1
    assert "completionTime" not in status


async def test_a_pod_failure_policy_fails_the_job_at_once(ns: Namespace, node: SimulatedNode) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    await ns.job(fate={"exit_code": 42}, backoffLimit=5, podFailurePolicy={"rules": [rule]})
    conditions, status = await ns.ended()
    [pod] = await ns.pods()
    name = f"{ns.name}/{pod['metadata']['name']}"
    message = f"Container c for pod {name} failed with exit code 42 matching FailJob rule at index 0"
    assert told(conditions["Failed"]) == ("PodFailurePolicy", message)
    assert status["failed"] == 1


async def test_a_pod_failure_policy_ignores_disruptions(ns: Namespace, api: Any) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    disrupted: list[str] = []

    def choose(pod: Any, attempt: int) -> Fate:
        if pod["metadata"]["namespace"] != ns.name or disrupted:
            return Fate(run=0.0)
        disrupted.append(pod["metadata"]["name"])
        return Fate(exit_code=137, conditions=(("DisruptionTarget", "EvictionByEvictionAPI"),))

    async with SimulatedNode(api, choose):
        await ns.job(backoffLimit=0, podFailurePolicy={"rules": [rule]})
        conditions, status = await ns.ended()
    assert "Complete" in conditions
    assert (status["succeeded"], status.get("failed", 0)) == (1, 0)


async def test_a_success_policy_ends_the_job_with_its_leader(ns: Namespace, api: Any) -> None:
    def choose(pod: Any, attempt: int) -> Fate:
        index = pod["metadata"]["annotations"].get(INDEX)
        return Fate(run=0.1 if index == "0" else None)

    async with SimulatedNode(api, choose):
        await ns.job(
            completions=3,
            parallelism=3,
            completionMode="Indexed",
            successPolicy={"rules": [{"succeededIndexes": "0"}]},
        )
        conditions, status = await ns.ended()
    assert told(conditions["SuccessCriteriaMet"]) == ("SuccessPolicy", "Matched rules at index 0")
    assert told(conditions["Complete"]) == ("SuccessPolicy", "Matched rules at index 0")
    assert (status["succeeded"], status["completedIndexes"]) == (1, "0")


async def test_a_limit_per_index_fails_only_its_index(ns: Namespace, api: Any) -> None:
    def choose(pod: Any, attempt: int) -> Fate:
        return Fate(exit_code=1 if pod["metadata"]["annotations"].get(INDEX) == "1" else 0)

    async with SimulatedNode(api, choose):
        await ns.job(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=0)
        conditions, status = await ns.ended()
    assert told(conditions["Failed"]) == ("FailedIndexes", "Job has failed indexes")
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(ns: Namespace, node: SimulatedNode) -> None:
    await ns.job(suspend=True)

    async def suspended() -> Any:
        status = (await ns.get(JOBS_PATH, "j")).get("status") or {}
        return {c["type"]: c for c in status.get("conditions") or ()}.get("Suspended")

    assert told(await until(suspended)) == ("JobSuspended", "Job suspended")
    assert await ns.pods() == []
    await ns.patch(JOBS_PATH, "j", {"spec": {"suspend": False}})
    await ns.ended()
    assert told(await suspended()) == ("JobResumed", "Job resumed")


async def test_suspending_a_running_job_takes_its_pods(ns: Namespace, node: SimulatedNode) -> None:
    await ns.job(fate={"run": None})

    async def running() -> bool:
        return (await ns.get(JOBS_PATH, "j"))["status"].get("ready") == 1

    await until(running)
    await ns.patch(JOBS_PATH, "j", {"spec": {"suspend": True}})

    async def empty() -> bool:
        status = (await ns.get(JOBS_PATH, "j"))["status"]
        return not status.get("active") and "startTime" not in status and await ns.pods() == []

    await until(empty)


async def test_a_deadline_ends_a_job(ns: Namespace, node: SimulatedNode) -> None:
    await ns.job(fate={"run": None}, activeDeadlineSeconds=1)
    conditions, _ = await ns.ended()
    assert told(conditions["Failed"]) == ("DeadlineExceeded", "Job was active longer than specified deadline")

    async def empty() -> bool:
        return await ns.pods() == []

    await until(empty)


async def test_jobs_that_make_no_sense(talk: Any) -> None:
    spec = {"template": template()}
    always = {"template": template(restart="Always")}
    for body in (
        {},
        {**spec, "completions": -1},
        {**spec, "completionMode": "Indexed"},
        {**spec, "selector": {"matchLabels": {"a": "b"}}},
        {**spec, "backoffLimitPerIndex": 1},
        {**spec, "ttlSecondsAfterFinished": -1},
        {**spec, "activeDeadlineSeconds": -1},
        {**spec, "podFailurePolicy": {"rules": [{"action": "Sing"}]}},
        always,
    ):
        answer = await talk.api(
            "POST", f"{JOBS_PATH}?dryRun=All".replace("{ns}", talk.namespace), {"metadata": {"name": "j"}, "spec": body}
        )
        causes = (answer.body.get("details") or {}).get("causes") or ()
        talk.say(
            json.dumps(body), [answer.code, sorted({f"{cause.get('field')} {cause['reason']}" for cause in causes})]
        )


DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
REPLICA_SETS = "/apis/apps/v1/namespaces/{ns}/replicasets"
STATEFUL_SETS = "/apis/apps/v1/namespaces/{ns}/statefulsets"
SELECTOR = {"matchLabels": {"app": "x"}}


async def available(ns: Namespace, name: str, replicas: int, generation: int) -> Any:
    async def check() -> Any:
        found = await ns.get(DEPLOYMENTS, name)
        status = found.get("status") or {}
        done = status.get("availableReplicas", 0) == replicas == status.get("updatedReplicas", 0)
        rest = status.get("replicas", 0) == replicas and status.get("observedGeneration") == generation
        return found if done and rest else None

    return await until(check)


async def test_a_deployment_rolls_out_and_scales(ns: Namespace, node: SimulatedNode) -> None:
    await ns.create(
        DEPLOYMENTS, "d", spec={"replicas": 2, "selector": SELECTOR, "template": template(restart="Always")}
    )
    found = await available(ns, "d", 2, 1)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in found["status"]["conditions"]}
    assert conditions["Available"] == ("True", "MinimumReplicasAvailable")
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    image = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    await ns.patch(DEPLOYMENTS, "d", image)
    found = await available(ns, "d", 2, 2)
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    sets = (await ns.api.ok("GET", ns.path(REPLICA_SETS)))["items"]
    assert sorted(item["spec"]["replicas"] for item in sets) == [0, 2]
    await ns.patch(f"{DEPLOYMENTS}/d", "scale", {"spec": {"replicas": 3}})
    await available(ns, "d", 3, 3)
    assert {pod["spec"]["containers"][0]["image"] for pod in await ns.pods()} == {"i:2"}


async def test_a_deployment_says_when_it_makes_no_progress(ns: Namespace, api: Any) -> None:
    spec = {"replicas": 1, "selector": SELECTOR, "progressDeadlineSeconds": 1, "template": template(restart="Always")}
    async with SimulatedNode(api, lambda pod, attempt: Fate(run=None, ready=False)):
        await ns.create(DEPLOYMENTS, "d", spec=spec)

        async def stuck() -> Any:
            status = (await ns.get(DEPLOYMENTS, "d")).get("status") or {}
            found = {c["type"]: c for c in status.get("conditions") or ()}.get("Progressing")
            return found if found and found["status"] == "False" else None

        assert (await until(stuck))["reason"] == "ProgressDeadlineExceeded"


async def test_a_stateful_set_makes_its_pods_in_order_and_keeps_their_names(ns: Namespace, node: SimulatedNode) -> None:
    await ns.create(
        STATEFUL_SETS,
        "s",
        spec={"replicas": 3, "serviceName": "s", "selector": SELECTOR, "template": template(restart="Always")},
    )

    async def ready() -> bool:
        return ((await ns.get(STATEFUL_SETS, "s")).get("status") or {}).get("readyReplicas") == 3

    await until(ready)
    pods = await ns.pods()
    assert [pod["metadata"]["name"] for pod in pods] == ["s-0", "s-1", "s-2"]
    assert [pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] for pod in pods] == ["0", "1", "2"]
    assert {pod["spec"]["subdomain"] for pod in pods} == {"s"}
    assert pods[0]["status"]["startTime"] <= pods[2]["status"]["startTime"]
    first = pods[1]["metadata"]["uid"]
    await ns.api.ok("DELETE", f"{ns.path(PODS_PATH)}/s-1")

    async def replaced() -> bool:
        found = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await ns.pods()}
        return found.get("s-1") not in (None, first) and await ready()

    await until(replaced)
    await ns.patch(STATEFUL_SETS, "s", {"spec": {"replicas": 1}})

    async def shrunk() -> bool:
        return [pod["metadata"]["name"] for pod in await ns.pods()] == ["s-0"]

    await until(shrunk)
    await ns.api.ok("DELETE", f"{ns.path(STATEFUL_SETS)}/s")

    async def gone() -> bool:
        return await ns.pods() == []

    await until(gone)


async def test_hundreds_of_pods_live_and_end(ns: Namespace, node: SimulatedNode) -> None:
    count = 300
    await ns.job(completions=count, parallelism=count)
    _, status = await ns.ended()
    assert status["succeeded"] == count
