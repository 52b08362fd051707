"""Which pods a service sends its clients to."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def pod(name: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "x", "ports": [{"name": "http", "containerPort": 8080}]}
    metadata = {"name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def service(**spec: Any) -> Json:
    body = {"selector": {"app": "web"}, "ports": [{"name": "web", "port": 80, "targetPort": "http"}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": body}


async def test_only_ready_pods_are_addresses_and_named_ports_become_numbers(cluster: Any) -> None:
    cluster.create(service())
    cluster.run_pod(cluster.create(pod("a")), "127.1.0.1")
    cluster.run_pod(cluster.create(pod("b")), "127.1.0.2", ready=False)
    await cluster.settle()
    (subset,) = cluster.get("Endpoints", "web")["subsets"]
    assert [a["ip"] for a in subset["addresses"]] == ["127.1.0.1"]
    assert [a["ip"] for a in subset["notReadyAddresses"]] == ["127.1.0.2"]
    assert subset["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    (piece,) = cluster.all("EndpointSlice", labels="kubernetes.io/service-name=web")
    assert {e["addresses"][0]: e["conditions"]["ready"] for e in piece["endpoints"]} == {
        "127.1.0.1": True,
        "127.1.0.2": False,
    }


async def test_a_service_may_publish_pods_that_are_not_ready_with_their_host_names(cluster: Any) -> None:
    cluster.create(service(clusterIP="None", publishNotReadyAddresses=True))
    cluster.run_pod(cluster.create(pod("a", hostname="first", subdomain="web")), ready=False)
    await cluster.settle()
    (subset,) = cluster.get("Endpoints", "web")["subsets"]
    assert [(a["ip"], a["hostname"]) for a in subset["addresses"]] == [("127.1.0.1", "first")]


async def test_a_pod_on_its_way_out_or_ended_is_no_endpoint(cluster: Any) -> None:
    cluster.create(service())
    leaving, ending = cluster.create(pod("a")), cluster.create(pod("b"))
    for each in (leaving, ending):
        cluster.run_pod(each)
    await cluster.settle()
    cluster.delete("Pod", "a")
    cluster.end_pod(cluster.get("Pod", "b"))
    await cluster.settle()
    subsets = cluster.get("Endpoints", "web").get("subsets") or []
    assert [a for s in subsets for a in s.get("addresses", ())] == []
    assert [a["targetRef"]["name"] for s in subsets for a in s.get("notReadyAddresses", ())] == ["a"]
    (piece,) = cluster.all("EndpointSlice", labels="kubernetes.io/service-name=web")
    assert [e["conditions"] for e in piece["endpoints"]] == [{"ready": False, "serving": True, "terminating": True}]


async def test_a_changed_label_moves_a_pod_out_of_the_service(cluster: Any) -> None:
    cluster.create(service())
    cluster.run_pod(cluster.create(pod("a")))
    await cluster.settle()
    cluster.patch("Pod", "a", {"metadata": {"labels": {"app": "other"}}})
    await cluster.settle()
    assert not cluster.get("Endpoints", "web").get("subsets")


async def test_endpoints_deleted_by_hand_come_back_and_go_with_their_service(cluster: Any) -> None:
    cluster.create(service())
    cluster.run_pod(cluster.create(pod("a")))
    await cluster.settle()
    cluster.delete("Endpoints", "web")
    await cluster.settle()
    assert cluster.get("Endpoints", "web")["subsets"]
    cluster.delete("Service", "web")
    await cluster.settle()
    assert not cluster.exists("Endpoints", "web")
    assert cluster.all("EndpointSlice") == []
