"""What `kubectl get` prints: columns of built-in kinds, JSONPath of printer columns, durations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from gryvia_devcluster.api.builtins import BUILTINS
from gryvia_devcluster.api.durations import human
from gryvia_devcluster.api.jsonpath import compile_path, evaluate
from gryvia_devcluster.api.tables import definitions, row

NOW = datetime(2030, 1, 1, 1, tzinfo=UTC)
TYPES = {rt.kind: rt for rt in BUILTINS}


def cells(kind: str, **parts: Any) -> dict[str, Any]:
    obj = {"metadata": {"name": "x", "creationTimestamp": "2030-01-01T00:00:00Z"}, "spec": {}, **parts}
    titles = [column["name"] for column in definitions(TYPES[kind])]
    return dict(zip(titles, row(TYPES[kind], obj, NOW), strict=True))


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_kind_prints_even_an_almost_empty_object(kind: str) -> None:
    parts: dict[str, Any] = {"roleRef": {"kind": "Role", "name": "r"}}
    if kind == "HorizontalPodAutoscaler":
        parts["spec"] = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}}
    assert cells(kind, **parts)


@pytest.mark.parametrize(
    ("status", "meta", "word"),
    [
        ({"phase": "Pending"}, {}, "Pending"),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            {},
            "CrashLoopBackOff",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]},
            {},
            "Error",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9, "exitCode": 137}}}]},
            {},
            "Signal:9",
        ),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, {}, "DeadlineExceeded"),
        ({"phase": "Running"}, {"deletionTimestamp": "2030-01-01T00:00:00Z"}, "Terminating"),
        ({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}, {}, "Init:0/1"),
        (
            {"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 3}}}]},
            {},
            "Init:ExitCode:3",
        ),
    ],
)
def test_the_status_word_of_a_pod(status: dict[str, Any], meta: dict[str, Any], word: str) -> None:
    metadata = {"name": "x", "creationTimestamp": "2030-01-01T00:00:00Z", **meta}
    spec = {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}
    assert cells("Pod", metadata=metadata, spec=spec, status=status)["Status"] == word


def test_the_other_columns_of_a_pod() -> None:
    ended = {"terminated": {"finishedAt": "2030-01-01T00:55:00Z"}}
    status = {"containerStatuses": [{"ready": True, "restartCount": 3, "lastState": ended}], "podIP": "127.0.0.9"}
    found = cells("Pod", spec={"containers": [{}, {}], "nodeName": "n"}, status=status)
    assert (found["Ready"], found["Restarts"], found["Age"], found["IP"]) == ("1/2", "3 (5m ago)", "60m", "127.0.0.9")


def test_workloads_count_their_replicas() -> None:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
    found = cells("Deployment", spec=spec, status={"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2})
    assert (found["Ready"], found["Up-to-date"], found["Images"], found["Selector"]) == ("2/3", 3, "i", "a=b")
    times = {"startTime": "2030-01-01T00:00:00Z", "completionTime": "2030-01-01T00:02:05Z"}
    done = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2, **times}
    job = cells("Job", spec={"completions": 2, "template": {}}, status=done)
    assert (job["Status"], job["Completions"], job["Duration"]) == ("Complete", "2/2", "2m5s")


def test_services_and_endpoints_print_addresses() -> None:
    service = cells("Service", spec={"type": "ClusterIP", "clusterIP": "127.3.0.1", "ports": [{"port": 80}]})
    assert (service["Cluster-IP"], service["External-IP"], service["Port(s)"]) == ("127.3.0.1", "<none>", "80/TCP")
    subsets = [{"addresses": [{"ip": f"1.1.1.{n}"} for n in range(5)], "ports": [{"port": 1}]}]
    assert cells("Endpoints", subsets=subsets)["Endpoints"] == "1.1.1.0:1,1.1.1.1:1,1.1.1.2:1 + 2 more..."


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (10 * 60, "10m"),
        (179 * 60, "179m"),
        (180 * 60, "3h"),
        (7 * 3600 + 300, "7h5m"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_durations_read_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert human(seconds) == text


OBJ = {
    "metadata": {"annotations": {"a.b/c": "dotted"}},
    "spec": {"on": True, "list": [{"n": "a", "v": 1}, {"n": "b", "v": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.on", [True]),
        ("{.spec.on}", [True]),
        ("spec.list[0].v", [1]),
        (".spec.list[-1].v", [2]),
        (".spec.list[*].n", ["a", "b"]),
        (r".metadata.annotations.a\.b/c", ["dotted"]),
        (".metadata.annotations['a.b/c']", ["dotted"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".spec.list[?(@.v==2)].n", ["b"]),
        (".nothing.here", []),
        (".spec.list[9].v", []),
    ],
)
def test_json_paths(path: str, values: list[Any]) -> None:
    assert evaluate(compile_path(path), OBJ) == values


def test_a_path_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot read the JSONPath"):
        compile_path(".a[?bad]")
