"""The children's manifests: names, environment, volumes, GPUs, as the contract states them; and what is refused or named."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gryvia_common.kube.resources import JOBS, PVCS, SERVICES, STATEFUL_SETS


def made(c):
    c.settle()
    return c.workload


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def env_of(workload):
    variables = pod_of(workload)["containers"][0]["env"]
    names = [variable["name"] for variable in variables]
    assert len(names) == len(set(names))
    return {
        v["name"]: v.get("value", (v.get("valueFrom") or {}).get("fieldRef", {}).get("fieldPath")) for v in variables
    }


INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
BASE = {
    "MASTER_ADDR": "train-0.train-headless.team-a.svc.cluster.local",
    "MASTER_PORT": "29500",
    "RANK": INDEX,
    "NODE_RANK": INDEX,
    "GRYVIA_DIST_FRAMEWORK": "pytorch",
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"gpus": 0, "distributed": {"nodes": 3, "backend": "gloo"}},
            {"WORLD_SIZE": "3", "NNODES": "3", "NPROC_PER_NODE": "1", "GRYVIA_DIST_BACKEND": "gloo"},
        ),
        (
            {"gpus": 4, "distributed": {"nodes": 2, "gpusPerNode": 4, "backend": "nccl"}},
            {
                "WORLD_SIZE": "8",
                "NNODES": "2",
                "NPROC_PER_NODE": "4",
                "GRYVIA_DIST_BACKEND": "nccl",
                "NCCL_DEBUG": "INFO",
            },
        ),
        (
            {"gpus": 8, "network": "rdma", "distributed": {"nodes": 2, "backend": "nccl"}},
            {
                "WORLD_SIZE": "16",
                "NNODES": "2",
                "NPROC_PER_NODE": "8",
                "GRYVIA_DIST_BACKEND": "nccl",
                "NCCL_DEBUG": "INFO",
                "NCCL_IB_DISABLE": "0",
                "NCCL_NET_GDR_LEVEL": "5",
            },
        ),
        (
            {"gpus": 1, "network": "rdma", "distributed": {"nodes": 2, "backend": "gloo"}},
            {"WORLD_SIZE": "2", "NNODES": "2", "NPROC_PER_NODE": "1", "GRYVIA_DIST_BACKEND": "gloo"},
        ),
        (
            {"gpus": 2, "distributed": {"nodes": 4, "gpusPerNode": 2, "backend": "nccl", "elastic": {"minNodes": 2}}},
            {
                "WORLD_SIZE": "8",
                "NNODES": "2:4",
                "NPROC_PER_NODE": "2",
                "GRYVIA_DIST_BACKEND": "nccl",
                "NCCL_DEBUG": "INFO",
            },
        ),
    ],
)
def test_the_environment_of_a_distributed_job(cluster, spec, expected):
    distributed = {"enabled": True, "framework": "pytorch", **spec["distributed"]}
    assert env_of(made(cluster({**spec, "distributed": distributed}))) == {**BASE, **expected}


def test_the_environment_of_a_distributed_statefulset(cluster):
    c = cluster({"workloadKind": "statefulset", "distributed": {"enabled": True, "nodes": 3, "backend": "gloo"}})
    env = env_of(made(c))
    assert env["MASTER_ADDR"] == "train-training-0.train-headless.team-a.svc.cluster.local"
    assert env["RANK"] == env["NODE_RANK"] == "metadata.labels['apps.kubernetes.io/pod-index']"
    assert c.workload["spec"]["replicas"] == 3
    assert c.workload["spec"]["podManagementPolicy"] == "Parallel"
    assert c.workload["spec"]["serviceName"] == "train-headless"
    assert c.workload["spec"]["template"]["metadata"]["annotations"]["gryvia.io/env-version"] == "2"


def test_nothing_is_injected_unless_distributed_is_enabled(cluster):
    env = [{"name": "A", "value": "1"}]
    assert env_of(made(cluster({"env": env, "distributed": {"enabled": False, "nodes": 3}}))) == {"A": "1"}


def test_user_env_comes_first_and_gives_way_to_ours(cluster):
    env = [{"name": "A", "value": "1"}, {"name": "RANK", "value": "7"}, {"name": "A", "value": "2"}]
    c = cluster({"env": env, "distributed": {"enabled": True, "nodes": 2}})
    found = env_of(made(c))
    assert next(iter(found)) == "A"
    assert found["A"] == "2"
    assert found["RANK"] == INDEX
    assert "spec.env[RANK]" in c.condition("FieldsIgnored")["message"]


def test_the_batch_job(cluster):
    spec = {
        "retryLimit": 2,
        "timeout": "1d12h",
        "distributed": {"enabled": True, "nodes": 4, "elastic": {"minNodes": 3}},
    }
    c = cluster(spec)
    body = made(c)["spec"]
    assert c.workload["metadata"]["name"] == "train"
    assert (body["completionMode"], body["parallelism"], body["completions"]) == ("Indexed", 4, 4)
    assert body["backoffLimit"] == 2
    assert body["activeDeadlineSeconds"] == 36 * 3600
    assert body["successPolicy"] == {"rules": [{"succeededCount": 3}]}
    assert body["podFailurePolicy"]["rules"] == [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    ]
    assert pod_of(c.workload)["restartPolicy"] == "Never"
    assert pod_of(c.workload)["subdomain"] == "train-headless"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90m", 5400), ("24h", 86400), ("7d", 604800), ("1d12h", 129600), ("30s", 30)]
)
def test_timeouts(cluster, text, seconds):
    assert made(cluster({"timeout": text}))["spec"]["activeDeadlineSeconds"] == seconds


def test_service_and_claim(cluster):
    c = cluster({"storage": "fast", "storageRequest": "5Gi"})
    made(c)
    service = c.children[SERVICES]["train-headless"]["spec"]
    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert service["ports"][0]["port"] == 29500
    assert service["selector"] == {"gryvia.io/job": "train"}
    claim = c.children[PVCS]["train-data"]["spec"]
    assert claim["resources"]["requests"]["storage"] == "5Gi"
    assert claim["storageClassName"] == "fast"
    assert claim["accessModes"] == ["ReadWriteOnce"]
    assert {"name": "gryvia-data", "mountPath": "/data"} in pod_of(c.workload)["containers"][0]["volumeMounts"]


def test_no_storage_no_claim(cluster):
    c = cluster({})
    made(c)
    assert not c.children[PVCS]


def test_gpu_pods_get_limit_selector_and_shared_memory(cluster):
    c = cluster({"gpus": 2, "gpuType": "H100", "nodeSelector": {"zone": "a"}})
    pod = pod_of(made(c))
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert pod["nodeSelector"] == {"zone": "a", "gryvia.io/gpu": "H100"}
    assert pod["volumes"] == [{"name": "gryvia-shm", "emptyDir": {"medium": "Memory"}}]
    assert pod["containers"][0]["volumeMounts"] == [{"name": "gryvia-shm", "mountPath": "/dev/shm"}]


@pytest.mark.parametrize("gpu_type", [None, "", "any"])
def test_any_gpu_needs_no_selector(cluster, gpu_type):
    assert "nodeSelector" not in pod_of(
        made(cluster({"gpus": 1, **({} if gpu_type is None else {"gpuType": gpu_type})}))
    )


def test_without_gpus_nothing_about_gpus_is_in_the_pod(cluster):
    c = cluster({"gpus": 0, "gpuType": "A100", "resources": {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}}})
    pod = pod_of(made(c))
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "2"}}
    assert "nodeSelector" not in pod
    assert "volumes" not in pod
    message = c.condition("FieldsIgnored")["message"]
    assert "spec.gpuType" in message
    assert "spec.resources.limits[nvidia.com/gpu]" in message


def test_the_users_own_pod_settings_arrive(cluster):
    spec = {
        "command": ["python"],
        "args": ["-c", "pass"],
        "workingDir": "/app",
        "imagePullPolicy": "Always",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "volumes": [{"name": "code", "configMap": {"name": "script"}}],
        "volumeMounts": [{"name": "code", "mountPath": "/app"}],
    }
    pod = pod_of(made(cluster(spec)))
    container = pod["containers"][0]
    for field in ("command", "args", "workingDir", "imagePullPolicy", "volumeMounts"):
        assert container[field] == spec[field]
    for field in ("tolerations", "affinity", "volumes"):
        assert pod[field] == spec[field]


@pytest.mark.parametrize("kind", ["job", "statefulset"])
@pytest.mark.parametrize("length", [5, 40, 50, 56, 57, 60, 63, 64, 200])
def test_long_names_leave_room_for_what_kubernetes_adds(cluster, kind, length):
    """Host names end at 63 characters, and a StatefulSet's name becomes a label with an 11 character hash."""
    name = "j" * length
    c = cluster({"workloadKind": kind, "distributed": {"enabled": True, "nodes": 12}}, name=name)
    workload = made(c)["metadata"]["name"]
    assert len(f"{workload}-11") <= 63
    if kind == "statefulset":
        assert len(workload) <= 52
    assert all(len(n) <= 63 for n in c.children[SERVICES])
    assert env_of(c.workload)["MASTER_ADDR"].startswith(f"{workload}-0.")


def test_a_name_that_no_service_can_have_is_fine_for_one_pod_and_refused_for_several(cluster):
    single = cluster({}, name="7b-eval")
    made(single)
    assert single.children[JOBS]
    assert not single.children[SERVICES]
    several = cluster({"distributed": {"enabled": True, "nodes": 2}}, name="7b-train")
    several.settle()
    assert several.phase == "Failed"
    assert "metadata.name" in several.status["message"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"gpus": -1}, ["spec.gpus", "-1"]),
        ({"image": ""}, ["spec.image", "python:3.11-slim"]),
        ({"image": None}, ["spec.image"]),
        ({"image": " x"}, ["spec.image"]),
        ({"gpus": 1, "gpuType": "H 100"}, ["spec.gpuType", '"H 100"']),
        ({"queueName": "My Queue"}, ["spec.queueName", '"My Queue"']),
        ({"timeout": "soon"}, ["spec.timeout", '"soon"', "90m"]),
        ({"timeout": "0m"}, ["spec.timeout", '"0m"', "90m"]),
        ({"timeout": "-5m"}, ["spec.timeout", '"-5m"']),
        ({"timeout": ""}, ["spec.timeout"]),
        ({"retryLimit": -1}, ["spec.retryLimit", "-1", "0 or more"]),
        ({"priority": 101}, ["spec.priority", "101"]),
        ({"storage": "x", "storageRequest": "lots"}, ["spec.storageRequest", '"lots"', "100Gi"]),
        ({"storage": "x", "storageRequest": "0"}, ["spec.storageRequest", '"0"']),
        ({"storage": "x", "storageRequest": "-1Gi"}, ["spec.storageRequest"]),
        ({"distributed": {"enabled": True, "nodes": 0}}, ["spec.distributed.nodes", "0", "1 or more"]),
        ({"distributed": {"enabled": True, "nodes": -2}}, ["spec.distributed.nodes", "-2"]),
        (
            {"distributed": {"enabled": True, "nodes": 2, "elastic": {"minNodes": 3}}},
            ["spec.distributed.elastic.minNodes", "3", "(2)"],
        ),
        ({"distributed": {"enabled": True, "nodes": 2, "elastic": {"minNodes": 0}}}, ["elastic.minNodes", "0"]),
        ({"gpus": 1, "distributed": {"enabled": True, "nodes": 2, "gpusPerNode": 0}}, ["gpusPerNode", "0"]),
        ({"metricPatterns": {"loss": "loss=("}}, ["spec.metricPatterns[loss]", '"loss=("', "RE2"]),
        ({"metricPatterns": {"loss": "loss=.*"}}, ["spec.metricPatterns[loss]", "0 groups", "( )"]),
        ({"metricPatterns": {"loss": "(a)(b)"}}, ["spec.metricPatterns[loss]", "2 groups"]),
        (
            {"storage": "x", "volumes": [{"name": "v"}], "volumeMounts": [{"name": "v", "mountPath": "/data/"}]},
            ["spec.volumeMounts", "/data"],
        ),
    ],
)
def test_a_bad_spec_fails_and_names_field_value_and_fix(cluster, spec, words):
    c = cluster(spec)
    c.settle()
    assert c.phase == "Failed"
    for word in words:
        assert word in c.status["message"]
    assert not any(c.children.values())
    assert c.events[-1].type == "gryvia.job.failed"
    assert c.status["completionTime"]
    before = len(c.writes)
    c.settle()
    assert len(c.writes) == before


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"workloadKind": "statefulset", "retryLimit": 3}, "spec.retryLimit"),
        ({"workloadKind": "statefulset", "timeout": "1h"}, "spec.timeout"),
        ({"type": "inference", "suspend": True}, "spec.suspend"),
        ({"type": "inference", "queueName": "q"}, "spec.queueName"),
        ({"storageRequest": "5Gi"}, "spec.storageRequest"),
        ({"distributed": {"enabled": False, "nodes": 2}}, "spec.distributed"),
        ({"distributed": {"elastic": {"minNodes": 1}}}, "spec.distributed"),
        ({"distributed": {"enabled": True, "nodes": 2, "gpusPerNode": 8}}, "spec.distributed.gpusPerNode"),
        ({"network": "rdma"}, "spec.network"),
        ({"network": "sriov"}, "spec.network"),
    ],
)
def test_a_field_without_effect_is_named(cluster, spec, field):
    c = cluster(spec)
    c.settle()
    assert c.phase == "Pending"
    assert field in c.condition("FieldsIgnored")["message"]


def test_a_plain_spec_has_nothing_to_name(cluster):
    c = cluster({"network": "standard", "priority": 50})
    c.settle()
    assert not c.condition("FieldsIgnored")


def test_default_workload_by_type(cluster):
    for kind in ("training", "fine-tuning", "evaluation"):
        c = cluster({"type": kind})
        c.settle()
        assert c.children[JOBS]
    c = cluster({"type": "inference"})
    c.settle()
    assert c.children[STATEFUL_SETS]
    c = cluster({"type": "inference", "workloadKind": "job"})
    c.settle()
    assert c.children[JOBS]


def small(**fields):
    return st.fixed_dictionaries({}, optional=fields)


WORDS = st.sampled_from(["", "a", "0", "-1", "1h", "90m", "1.5", "5Gi", "nan", "(", "(x)", "/data", "A B", "x" * 70])
NUMBERS = st.integers(-2, 12)
SPECS = small(
    type=st.sampled_from(["training", "inference", "fine-tuning", "evaluation"]),
    gpus=NUMBERS,
    gpuType=WORDS,
    image=WORDS,
    storage=WORDS,
    storageRequest=WORDS,
    network=st.sampled_from(["rdma", "sriov", "standard"]),
    env=st.lists(small(name=st.sampled_from(["A", "RANK", "WORLD_SIZE"]), value=WORDS), max_size=4),
    distributed=small(
        enabled=st.booleans(),
        nodes=NUMBERS,
        gpusPerNode=NUMBERS,
        backend=st.sampled_from(["nccl", "gloo", "mpi"]),
        elastic=small(minNodes=NUMBERS),
    ),
    resources=small(limits=st.dictionaries(st.sampled_from(["cpu", "nvidia.com/gpu"]), WORDS, max_size=2)),
    volumeMounts=st.lists(small(name=WORDS, mountPath=WORDS), max_size=2),
    priority=NUMBERS,
    retryLimit=NUMBERS,
    timeout=WORDS,
    workloadKind=st.sampled_from(["job", "statefulset"]),
    suspend=st.booleans(),
    queueName=WORDS,
    metricPatterns=st.dictionaries(st.sampled_from(["loss", ""]), WORDS, max_size=2),
)
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")


@given(spec=SPECS, name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,70}[a-z0-9])?", fullmatch=True), kueue=st.booleans())
@settings(max_examples=200, deadline=None)
def test_any_spec_either_fails_with_words_or_becomes_sound_manifests(cluster, spec, name, kueue):
    c = cluster(spec, name=name, kueue=kueue)
    c.settle()
    if c.phase == "Failed":
        assert re.search(r"(spec|metadata)[.\[]", c.status["message"])
        assert not any(c.children.values())
        return
    assert c.phase in ("Pending", "Queued")
    env_of(c.workload)
    for objects in c.children.values():
        for child, obj in objects.items():
            assert len(child) <= 63
            assert all(len(v) <= 63 and LABEL_VALUE.fullmatch(v) for v in obj["metadata"]["labels"].values())
    gpu = pod_of(c.workload)["containers"][0].get("resources", {}).get("limits", {}).get("nvidia.com/gpu")
    assert gpu == (str(spec["gpus"]) if spec.get("gpus", 0) > 0 else None)
    json.dumps(c.workload, allow_nan=False)
