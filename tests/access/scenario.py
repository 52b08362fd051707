"""Everything that makes a service send a request of another sort, played once on any API server by an admin's client.

There is no node: pods are said to run and to end by writing their status, so that the same scenario runs on devcluster and on a real
API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gryvia_common.errors import Gone
from gryvia_common.kinds.aijob import AI_JOB
from gryvia_common.kinds.autotuner import AUTO_TUNER
from gryvia_common.kinds.inferenceservice import INFERENCE_SERVICE
from gryvia_common.kinds.modelregistry import MODEL_REGISTRY
from gryvia_common.kinds.workflow import WORKFLOW
from gryvia_common.kube.children import owned_metadata
from gryvia_common.kube.client import Kube
from gryvia_common.kube.objects import Json, annotations_of, is_deleting, labels_of, metadata
from gryvia_common.kube.resources import CONFIG_MAPS, EVENTS, JOBS, PODS, PVCS, SERVICES, STATEFUL_SETS, Resource

from .guarded_api import Request, until

LONG = 60_000
TRIALS = 7


@dataclass
class Scenario:
    """`namespace` is made; nothing in it belongs to anybody else."""

    kube: Kube
    namespace: str
    _disturbed: set[str] = field(default_factory=set)

    async def play(self) -> None:
        await self._collision()
        await self._job_that_is_suspended()
        await self._set_that_drifts_and_is_cancelled()
        await self._job_that_is_rejected()
        await self._job_that_is_preempted_twice()
        await self._study()
        await self._models()
        await self._workflow()
        await self._old_run()

    async def disturb(self, request: Request) -> None:
        """Before a status is written for the first time somebody edits the object: the write is a conflict and is decided anew."""
        service, verb, _, resource, namespace, name = request
        if (verb, resource) != ("patch", "gryviaautotuners/status") or service in self._disturbed:
            return
        self._disturbed.add(service)
        change = {"metadata": {"annotations": {"touched": "yes"}}}
        await self.kube.patch(AUTO_TUNER.resource, namespace, name, change)

    async def _collision(self) -> None:
        stranger = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "taken", "namespace": self.namespace},
            "spec": {
                "template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]},
                }
            },
        }
        await self.kube.create(JOBS, stranger)
        await self._submit("taken")
        await self._until(AI_JOB.resource, "taken", lambda job: "NameCollision" in (_status(job).get("message") or ""))

    async def _job_that_is_suspended(self) -> None:
        await self._submit("plain", storage="standard")
        await self._run_pod("plain")
        await self._until(AI_JOB.resource, "plain", lambda job: _status(job).get("phase") == "Running")
        await self._change(AI_JOB.resource, "plain", {"spec": {"suspend": True}})
        await self._until(JOBS, "plain", lambda job: job["spec"].get("suspend") is True)

    async def _set_that_drifts_and_is_cancelled(self) -> None:
        for name in ("set", "kept"):
            spread = {"enabled": True, "framework": "pytorch", "backend": "gloo", "nodes": 2}
            await self._submit(name, workloadKind="statefulset", distributed=spread)
        sets = await self._owned(STATEFUL_SETS, "set")
        service = metadata((await self._owned(SERVICES, "set"))[0])["name"]
        wanted = (await self.kube.get(SERVICES, self.namespace, service))["spec"]["selector"]
        await self._change(SERVICES, service, {"spec": {"selector": dict.fromkeys(wanted, "drifted")}})
        await self._until(SERVICES, service, lambda found: found["spec"]["selector"] == wanted)
        await self._change(AI_JOB.resource, "set", {"metadata": {"annotations": {"gryvia.io/cancel": "true"}}})
        await self._gone(STATEFUL_SETS, metadata(sets[0])["name"])

    async def _job_that_is_rejected(self) -> None:
        spread = {"enabled": True, "framework": "pytorch", "backend": "gloo", "nodes": 2}
        await self._submit("refused", storage="standard", distributed=spread)
        children = [(r, child) for r in (JOBS, SERVICES, PVCS) for child in await self._owned(r, "refused")]
        await self._set_phase("refused", "Rejected")
        for resource, child in children:
            await self._gone(resource, metadata(child)["name"])

    async def _job_that_is_preempted_twice(self) -> None:
        await self._submit("preempted")
        for _ in range(2):
            await self._until(JOBS, "preempted", lambda job: not is_deleting(job))
            await self._set_phase("preempted", "Preempted")
            await self._gone(JOBS, "preempted")
            await self._until(AI_JOB.resource, "preempted", lambda job: _status(job).get("phase") == "Preempted")
            await self._set_phase("preempted", "Pending")

        async def counted() -> bool:
            events = await self.kube.list(EVENTS, self.namespace)
            return any(event.get("reason") == "Preempted" and event.get("count") == 2 for event in events)

        await until(counted)

    async def _study(self) -> None:
        """Values so long that few trials fill the status; the last but one reaches the goal while another runs."""
        study = {
            "apiVersion": "gryvia.io/v1alpha1",
            "kind": "GryviaAutoTuner",
            "metadata": {"name": "study", "namespace": self.namespace},
            "spec": {
                "searchAlgorithm": "random",
                "objective": {"metricName": "score", "direction": "maximize", "goal": 1},
                "maxTrials": TRIALS,
                "parallelism": 3,
                "parameterSpace": [
                    {"name": "text", "type": "categorical", "values": ["x" * LONG, "y" * LONG]},
                    {"name": "number", "type": "int", "min": 0, "max": 1000},
                ],
                "jobTemplate": {"type": "training", "gpus": 0, "image": "python:3", "command": ["true"]},
            },
        }
        await self.kube.create(AUTO_TUNER.resource, study)
        for numbers in ((0, 1, 2), (3, 4), (5,)):
            score = "1" if numbers == (5,) else "0"
            async with asyncio.TaskGroup() as group:
                for number in numbers:
                    group.create_task(self._end_trial(f"study-trial-{number}", score))
        await self._gone(AI_JOB.resource, f"study-trial-{TRIALS - 1}")
        await self._until(AUTO_TUNER.resource, "study", lambda study: _status(study).get("phase") == "Succeeded")
        archived = await self._owned(CONFIG_MAPS, "study")
        assert [metadata(one)["name"] for one in archived] == ["study-trials-0"]

    async def _end_trial(self, name: str, score: str) -> None:
        await self._until(AI_JOB.resource, name, lambda job: True)
        await self._change(AI_JOB.resource, name, {"metadata": {"annotations": {"gryvia.io/metric-score": score}}})
        await self._run_pod(name, ended=True)
        await self._until(AI_JOB.resource, name, lambda job: _status(job).get("phase") == "Succeeded")

    async def _models(self) -> None:
        """The better one replaces the other; a third is rejected twice in the same words; a service serves the best."""
        serving = {"modelRef": "v2", "backend": "vllm", "replicas": 0}
        meta = {"name": "models", "namespace": self.namespace}
        service = {
            "apiVersion": "gryvia.io/v1alpha1",
            "kind": "GryviaInferenceService",
            "metadata": meta,
            "spec": serving,
        }
        await self.kube.create(INFERENCE_SERVICE.resource, service)
        for name, score, stage in (("v1", "0.5", "production"), ("v2", "0.9", "staging"), ("v3", "0.1", "staging")):
            meta = {"name": name, "namespace": self.namespace}
            spec = {
                "modelName": "model",
                "version": name,
                "artifacts": {"s3Path": f"s3://models/{name}"},
                "stage": stage,
                "metadata": {"score": score},
                "promotionPolicy": {"metric": "score"},
            }
            entry = {"apiVersion": "gryvia.io/v1alpha1", "kind": "GryviaModelRegistry", "metadata": meta, "spec": spec}
            await self.kube.create(MODEL_REGISTRY.resource, entry)
            wanted = "Rejected" if name == "v3" else "InProduction"
            await self._until(MODEL_REGISTRY.resource, name, lambda found, word=wanted: word in str(_status(found)))
        for metadata_, decision in (({"score": None}, "Waiting"), ({"score": "0.1"}, "Rejected")):
            await self._change(MODEL_REGISTRY.resource, "v3", {"spec": {"metadata": metadata_}})
            await self._until(
                MODEL_REGISTRY.resource,
                "v3",
                lambda found, word=decision: _status(found).get("promotionDecision") == word,
            )

    async def _workflow(self) -> None:
        """A pod and a job that take too long, the job twice; a pod with long outputs; an approval; an entry, and a change of it."""
        script = {"image": "python:3", "command": ["true"]}
        entry = {"modelName": "made", "version": "1", "artifacts": {"s3Path": "s3://models/made"}}
        job = {"type": "training", "gpus": 0, "image": "python:3", "command": ["true"]}
        steps: list[Json] = [
            {"name": "slow-pod", "timeoutSeconds": 1, "script": script},
            {"name": "slow-job", "timeoutSeconds": 1, "retries": 2, "jobTemplate": job},
            {"name": "long", "script": script},
            {"name": "ask", "type": "approval"},
            {"name": "make", "dependsOn": ["ask"], "register": entry},
            {
                "name": "mark",
                "dependsOn": ["make"],
                "registry": {"entry": "flow-make", "action": "updateMetadata", "metadata": {"seen": "yes"}},
            },
        ]
        await self._create_workflow("flow", steps=steps)
        for resource, name in ((PODS, "flow-slow-pod"), (AI_JOB.resource, "flow-slow-job-r2")):
            await self._until(resource, name, lambda found: not is_deleting(found))
            await self._gone(resource, name)
        await self._run_pod("flow", name="flow-long", ended=True, message='{"text": "' + "x" * 3000 + '"}')
        await self._until(CONFIG_MAPS, "flow-long-outputs", lambda found: len(found["data"]["text"]) == 3000)
        answer = {"gryvia.io/approval-ask": '{"decision": "Approved", "by": "ann"}'}
        await self._change(WORKFLOW.resource, "flow", {"metadata": {"annotations": answer}})
        await self._until(WORKFLOW.resource, "flow", lambda flow: _status(flow).get("phase") == "Failed")
        await self._until(WORKFLOW.resource, "flow", lambda flow: not answer.keys() & annotations_of(flow).keys())
        marked = await self.kube.get(MODEL_REGISTRY.resource, self.namespace, "flow-make")
        assert marked["spec"]["metadata"] == {"seen": "yes"}

    async def _old_run(self) -> None:
        """A run begins and what is left of one long before goes."""
        await self._create_workflow("yearly", schedule="0 0 1 1 *", steps=[{"name": "ask", "type": "approval"}])
        await self._until(WORKFLOW.resource, "yearly", lambda flow: _status(flow).get("phase") == "Scheduled")
        flow = await self.kube.get(WORKFLOW.resource, self.namespace, "yearly")
        labels = {"gryvia.io/run": "1"}
        meta = owned_metadata(flow, WORKFLOW.resource, "yearly-run-n1", labels)
        await self.kube.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}})
        status = {
            "run": 20,
            "startTime": "2001-01-01T00:00:00Z",
            "completionTime": "2001-01-01T00:00:00Z",
            "nextScheduleTime": "2001-01-01T00:00:00Z",
            "stepStatuses": [{"name": "ask", "phase": "Succeeded"}],
        }
        await self.kube.patch(WORKFLOW.resource, self.namespace, "yearly", {"status": status}, subresource="status")
        await self._until(WORKFLOW.resource, "yearly", lambda flow: _status(flow).get("run") == 21)
        await self._gone(CONFIG_MAPS, "yearly-run-n1")
        await self._until(CONFIG_MAPS, "yearly-run-n20", lambda found: bool(found["data"]))

    async def _create_workflow(self, name: str, **spec: object) -> None:
        meta = {"name": name, "namespace": self.namespace}
        workflow = {"apiVersion": "gryvia.io/v1alpha1", "kind": "GryviaWorkflow", "metadata": meta, "spec": spec}
        await self.kube.create(WORKFLOW.resource, workflow)

    async def _submit(self, name: str, **spec: object) -> None:
        job = {
            "apiVersion": "gryvia.io/v1alpha1",
            "kind": "GryviaAIJob",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"type": "training", "gpus": 0, "image": "python:3", "command": ["true"], **spec},
        }
        await self.kube.create(AI_JOB.resource, job)

    async def _set_phase(self, name: str, phase: str) -> None:
        change = {"status": {"phase": phase}}
        await self.kube.patch(AI_JOB.resource, self.namespace, name, change, subresource="status")

    async def _change(self, resource: Resource, name: str, change: Json) -> None:
        await self.kube.patch(resource, self.namespace, name, change)

    async def _run_pod(self, owner: str, *, ended: bool = False, name: str = "", message: str = "") -> None:
        """As a kubelet would say it, of the owner's pod, or of the one of this name."""
        pod = next(one for one in await self._owned(PODS, owner) if name in ("", metadata(one)["name"]))
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state: Json = {"running": {"startedAt": now}}
        if ended:
            end = {"exitCode": 0, "startedAt": now, "finishedAt": now, "reason": "Completed", "message": message}
            state = {"terminated": end}
        container: Json = {
            "name": pod["spec"]["containers"][0]["name"],
            "image": "python:3",
            "imageID": "",
            "ready": not ended,
            "restartCount": 0,
            "state": state,
        }
        status = {
            "phase": "Succeeded" if ended else "Running",
            "startTime": now,
            "conditions": [{"type": "Ready", "status": str(not ended), "lastTransitionTime": now}],
            "containerStatuses": [container],
        }
        await self.kube.patch(PODS, self.namespace, metadata(pod)["name"], {"status": status}, subresource="status")

    async def _owned(self, resource: Resource, owner: str) -> list[Json]:
        """What belongs to a Gryvia object of this name, as soon as there is anything."""
        found: list[Json] = []

        async def there() -> bool:
            listed = await self.kube.list(resource, self.namespace, labels="app.kubernetes.io/managed-by=gryvia")
            found[:] = [one for one in listed if f"/{owner}/" in annotations_of(one).get("gryvia.io/owner", "")]
            return bool(found)

        await until(there)
        assert all(labels_of(one) for one in found)
        return found

    async def _until(self, resource: Resource, name: str, wanted: Callable[[Json], bool]) -> None:
        async def reached() -> bool:
            try:
                return wanted(await self.kube.get(resource, self.namespace, name))
            except Gone:
                return False

        await self._within(reached, f"{resource.kind} {name}")

    async def _gone(self, resource: Resource, name: str) -> None:
        async def gone() -> bool:
            try:
                return is_deleting(await self.kube.get(resource, self.namespace, name))
            except Gone:
                return True

        await self._within(gone, f"{resource.kind} {name} to go")

    async def _within(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        try:
            await until(condition)
        except TimeoutError as error:
            raise AssertionError(f"waited in vain for {what}") from error


def _status(obj: Json) -> Json:
    return obj.get("status") or {}
