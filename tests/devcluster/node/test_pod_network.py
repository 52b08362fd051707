"""Services and names as programs in pods use them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

Json = dict[str, Any]

SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = os.environ["HOSTNAME"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
"""


def service(name: str, selector: Json, ports: list[Json], **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"selector": selector, "ports": ports, **spec}}


def server(machine: Any, name: str, **extra: Any) -> None:
    probe = {"tcpSocket": {"port": "http"}, "periodSeconds": 1, "failureThreshold": 60}
    machine.create(
        "pods",
        {
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "main",
                        "image": "python:3",
                        "command": ["python", "-c", SERVER],
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "readinessProbe": probe,
                    }
                ],
                **extra,
            },
        },
    )


def is_ready(pod: Json) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


async def addresses(machine: Any, name: str, count: int) -> Json:
    def enough(endpoints: Json) -> bool:
        return sum(len(s.get("addresses", ())) for s in endpoints.get("subsets") or ()) == count

    return await machine.until("endpoints", name, enough)


async def test_two_pods_on_the_same_port_share_the_load_of_a_service(machine: Any) -> None:
    machine.create("services", service("web", {"app": "web"}, [{"port": 80, "targetPort": "http"}]))
    server(machine, "web-a")
    server(machine, "web-b")
    await addresses(machine, "web", 2)
    code = """
import urllib.request
seen = [urllib.request.urlopen(f"http://{name}").read().decode()
        for name in ("web", "web.default", "web.default.svc", "web.default.svc.cluster.local")]
print(sorted(set(seen)))
"""
    machine.pod("client", code)
    pod = await machine.phase("client", "Succeeded", "Failed")
    assert machine.log(pod) == "['web-a', 'web-b']\n"


async def test_a_service_address_is_in_the_environment_and_serves_other_programs(machine: Any) -> None:
    created = machine.create("services", service("web", {"app": "web"}, [{"port": 8000, "targetPort": 8080}]))
    server(machine, "web-a")
    await addresses(machine, "web", 1)
    live = machine.get("services", "web")
    assert live["spec"]["clusterIP"].startswith("127.")
    assert created["metadata"]["uid"] == live["metadata"]["uid"]
    code = "import os; print(os.environ['WEB_SERVICE_HOST'], os.environ['WEB_SERVICE_PORT'])"
    machine.pod("env", code)
    assert machine.log(await machine.phase("env", "Succeeded")) == f"{live['spec']['clusterIP']} 8000\n"
    reader, writer = await asyncio.open_connection(live["spec"]["clusterIP"], 8000)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"web-a")
    writer.close()


async def test_names_resolve_for_programs_that_are_not_python(machine: Any) -> None:
    machine.create("services", service("web", {"app": "web"}, [{"port": 8000}]))
    live = await machine.until("services", "web", lambda s: s["spec"].get("clusterIP"))
    machine.pod("shell", main={"image": "busybox:1", "command": ["getent", "hosts", "web.default.svc.cluster.local"]})
    pod = await machine.phase("shell", "Succeeded", "Failed")
    assert machine.log(pod).split()[0] == live["spec"]["clusterIP"]


async def test_a_headless_name_is_gone_when_its_pod_is(machine: Any) -> None:
    machine.create("services", service("db", {"app": "web"}, [{"port": 8080}], clusterIP="None"))
    server(machine, "web-a", hostname="first", subdomain="db")
    await addresses(machine, "db", 1)
    pod = machine.get("pods", "web-a")
    code = "import socket; print(socket.gethostbyname('first.db'), socket.gethostbyname('db'))"
    machine.pod("finds", code)
    ip = pod["status"]["podIP"]
    assert machine.log(await machine.phase("finds", "Succeeded", "Failed")) == f"{ip} {ip}\n"
    machine.api.delete(machine.type("pods"), "default", "web-a")
    await addresses(machine, "db", 0)
    code = """
import socket
try:
    socket.getaddrinfo("first.db.default.svc.cluster.local", 80)
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
"""
    machine.pod("misses", code)
    assert machine.log(await machine.phase("misses", "Succeeded")) == "True\n"


async def test_localhost_reaches_what_the_pod_itself_serves(machine: Any) -> None:
    code = """
import socket, threading
server = socket.create_server(("0.0.0.0", 9000))
def answer():
    server.accept()[0].sendall(b"own")
threading.Thread(target=answer).start()
print(socket.create_connection(("localhost", 9000)).recv(3).decode(), server.getsockname()[0])
"""
    machine.pod("local", code)
    pod = await machine.phase("local", "Succeeded", "Failed")
    assert machine.log(pod) == f"own {pod['status']['podIP']}\n"


async def test_an_asyncio_server_on_all_addresses_listens_on_the_pods_own(machine: Any) -> None:
    code = """
import asyncio
import socket
async def main():
    server = await asyncio.start_server(lambda r, w: None, None, 9000)
    print([s.getsockname()[0] for s in server.sockets])
asyncio.run(main())
"""
    machine.pod("serves", code)
    pod = await machine.phase("serves", "Succeeded", "Failed")
    assert machine.log(pod) == f"['{pod['status']['podIP']}']\n"


async def test_a_sitecustomize_of_the_user_still_runs(machine: Any) -> None:
    machine.create("configmaps", {"metadata": {"name": "site"}, "data": {"sitecustomize.py": "print('user hook')"}})
    machine.pod(
        "site",
        "import socket; print(socket.gethostbyname('site'))",
        main={
            "env": [{"name": "PYTHONPATH", "value": "/opt/site"}],
            "volumeMounts": [{"name": "site", "mountPath": "/opt/site"}],
        },
        volumes=[{"name": "site", "configMap": {"name": "site"}}],
    )
    pod = await machine.phase("site", "Succeeded", "Failed")
    assert machine.log(pod) == f"user hook\n{pod['status']['podIP']}\n"


async def test_an_endpoint_leaves_a_service_when_its_pod_is_not_ready_any_more(machine: Any) -> None:
    machine.create("services", service("flaky", {"app": "flaky"}, [{"port": 8080}]))
    probe = {"exec": {"command": ["test", "!", "-e", "/state/bad"]}, "periodSeconds": 1, "failureThreshold": 1}
    machine.pod(
        "flaky",
        "import time; time.sleep(60)",
        main={"readinessProbe": probe, "volumeMounts": [{"name": "state", "mountPath": "/state"}]},
        volumes=[{"name": "state", "emptyDir": {}}],
    )
    await addresses(machine, "flaky", 1)
    await machine.node.execute(machine.get("pods", "flaky"), "main", ["touch", "/state/bad"])
    await addresses(machine, "flaky", 0)
    assert "Unhealthy" in machine.reasons("flaky")


async def test_a_failed_liveness_probe_restarts_the_container(machine: Any) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    code = "import time; time.sleep(60)"
    machine.pod("dead", code, restartPolicy="Always", main={"livenessProbe": probe}, terminationGracePeriodSeconds=1)

    def restarted(pod: Json) -> bool:
        states = pod["status"].get("containerStatuses") or [{"restartCount": 0, "state": {}}]
        return states[0]["restartCount"] >= 1 and "running" in states[0]["state"]

    pod = await machine.until("pods", "dead", restarted)
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 143
    assert "Killing" in machine.reasons("dead")


async def test_a_service_port_that_cannot_be_opened_is_reached_by_python_all_the_same(machine: Any) -> None:
    """Ports below 1024 without root, above all; here the port is taken."""
    with socket.socket() as taken:
        taken.bind(("127.130.77.9", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ports = [{"port": port, "targetPort": 8080}]
        machine.create("services", service("moved", {"app": "web"}, ports, clusterIP="127.130.77.9"))
        server(machine, "web-a")
        await addresses(machine, "moved", 1)
        code = f"import urllib.request; print(urllib.request.urlopen('http://moved:{port}').read().decode())"
        machine.pod("client", code)
        pod = await machine.phase("client", "Succeeded", "Failed")
        assert machine.log(pod) == "web-a\n"
