"""What a person does with kubectl all day, against a custom type and built-in ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest


def widget(name: str = "a", **spec: Any) -> str:
    labels = {"app": "x"}
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "labels": labels}}
    return json.dumps({**body, "spec": {"size": 1, **spec}})


@pytest.fixture
def k(kubectl: Any, namespace: str) -> Any:
    """kubectl in the test's namespace; `k.fails` for commands that must fail."""

    class InNamespace:
        def __call__(self, *arguments: str, stdin: str = "") -> str:
            return kubectl("-n", namespace, *arguments, stdin=stdin)

        def fails(self, *arguments: str, stdin: str = "") -> str:
            return kubectl.fails("-n", namespace, *arguments, stdin=stdin)

        def differs(self, *arguments: str, stdin: str = "") -> str:
            done = kubectl.run("-n", namespace, *arguments, stdin=stdin)
            assert done.returncode == 1, done.stderr
            return str(done.stdout)

        def json(self, *arguments: str) -> Any:
            return json.loads(self("get", *arguments, "-o", "json"))

    return InNamespace()


def rows(table: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]


def test_version_and_resources(kubectl: Any) -> None:
    assert "Server Version: v1." in kubectl("version")
    resources = kubectl("api-resources", "--no-headers")
    assert re.search(r"^widgets +wd +example\.com/v1 +true +Widget$", resources, re.MULTILINE)
    assert re.search(r"^pods +po +v1 +true +Pod$", resources, re.MULTILINE)
    assert "example.com/v1" in kubectl("api-versions")


def test_explain_shows_nested_fields(kubectl: Any) -> None:
    assert "How large it is." in kubectl("explain", "widget.spec")
    assert "Which wood." in kubectl("explain", "widget.spec.frame")
    assert re.search(r"httpGet\s+<HTTPGetAction>", kubectl("explain", "pod.spec.containers.livenessProbe"))


def test_create_get_and_delete(k: Any) -> None:
    assert k("create", "-f", "-", stdin=widget()) == "widget.example.com/a created\n"
    assert "AlreadyExists" in k.fails("create", "-f", "-", stdin=widget())
    assert rows(k("get", "wd"))[0] == ["NAME", "PHASE", "AGE"]
    assert rows(k("get", "wd", "-o", "wide"))[0] == ["NAME", "PHASE", "SIZE", "AGE"]
    assert k("get", "wd", "a", "-o", "jsonpath={.spec.color}") == "red"
    assert "uid:" in k("get", "wd", "a", "-o", "yaml")
    assert "a" in k("get", "widgets", "-A")
    assert "widget.example.com/a" in k("get", "all")
    k("delete", "wd", "a")
    assert "NotFound" in k.fails("get", "wd", "a")


def test_selectors(k: Any) -> None:
    for name in "ab":
        k("create", "-f", "-", stdin=widget(name))
    k("label", "wd", "b", "app=y", "--overwrite")
    assert k("get", "wd", "-l", "app=x", "-o", "name") == "widget.example.com/a\n"
    assert k("get", "wd", "-l", "app in (y,z)", "-o", "name") == "widget.example.com/b\n"
    assert k("get", "wd", "--field-selector", "metadata.name=b", "-o", "name") == "widget.example.com/b\n"


def test_client_side_apply_twice(k: Any) -> None:
    assert k("apply", "-f", "-", stdin=widget(replicas=2)).endswith("created\n")
    assert k("apply", "-f", "-", stdin=widget(replicas=2)).endswith("unchanged\n")
    assert k("apply", "-f", "-", stdin=widget()).endswith("configured\n")
    assert "replicas" not in k.json("wd", "a")["spec"]


def test_server_side_apply_after_client_side_apply_keeps_the_spec(k: Any) -> None:
    k("apply", "-f", "-", stdin=widget(replicas=2))
    k("apply", "--server-side", "-f", "-", stdin=widget(replicas=2))
    k("apply", "--server-side", "-f", "-", stdin=widget(replicas=2))
    assert k.json("wd", "a")["spec"] == {"size": 1, "replicas": 2, "color": "red"}
    k("apply", "--server-side", "-f", "-", stdin=widget())
    assert "replicas" not in k.json("wd", "a")["spec"]


def test_server_side_apply_conflicts_name_the_other_owner(k: Any) -> None:
    k("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=widget())
    refused = k.fails("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=widget(size=2))
    assert re.search(r'Apply failed with 1 conflict: conflict with "one".*: \.spec\.size', refused)
    k("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=widget(size=2))
    assert k.json("wd", "a")["spec"]["size"] == 2


def test_invalid_objects_are_refused_with_the_field(k: Any) -> None:
    refused = k.fails("create", "-f", "-", stdin=widget(size=0))
    assert 'The Widget "a" is invalid: spec.size: Invalid value: 0:' in refused
    assert 'unknown field "spec.foo"' in k.fails("create", "-f", "-", stdin=widget(foo=1))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    assert "spec.containers: Required value" in k.fails("create", "-f", "-", stdin=json.dumps(pod))


def test_every_kind_of_patch(k: Any) -> None:
    k("create", "-f", "-", stdin=widget())
    k("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"color":"blue"}}')
    k("patch", "wd", "a", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":3}]')
    k("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Ready"}}')
    obj = k.json("wd", "a")
    assert (obj["spec"], obj["status"]) == ({"color": "blue", "size": 3}, {"phase": "Ready"})
    assert rows(k("get", "wd"))[1][1] == "Ready"
    k("create", "configmap", "c", "--from-literal=a=1")
    k("patch", "configmap", "c", "-p", '{"data":{"b":"2"}}')
    assert k.json("configmap", "c")["data"] == {"a": "1", "b": "2"}


def test_label_annotate_and_scale(k: Any) -> None:
    k("create", "-f", "-", stdin=widget(replicas=1))
    k("label", "wd", "a", "l=1")
    k("annotate", "wd", "a", "n=2")
    k("scale", "wd", "a", "--replicas=7")
    obj = k.json("wd", "a")
    assert (obj["metadata"]["labels"]["l"], obj["metadata"]["annotations"]["n"], obj["spec"]["replicas"]) == (
        "1",
        "2",
        7,
    )


def test_wait_for_a_condition_a_value_and_deletion(k: Any) -> None:
    k("create", "-f", "-", stdin=widget())
    status = '{"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}}'
    k("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", status)
    assert "condition met" in k("wait", "wd/a", "--for=condition=Ready", "--timeout=5s")
    assert "condition met" in k("wait", "wd/a", "--for=jsonpath={.status.phase}=Ready", "--timeout=5s")
    assert "timed out" in k.fails("wait", "wd/a", "--for=condition=Other", "--timeout=1s")
    k("delete", "wd", "a", "--wait=false")
    k("wait", "wd/a", "--for=delete", "--timeout=5s")


def test_describe_shows_the_object(k: Any) -> None:
    k("create", "-f", "-", stdin=widget())
    described = k("describe", "wd", "a")
    assert re.search(r"Kind: +Widget", described)
    assert re.search(r"Size: +1", described)
    assert re.search(r"Events: +<none>", described)


def test_commands_that_send_protobuf(k: Any, kubectl: Any, namespace: str) -> None:
    k("create", "configmap", "c", "--from-literal=a=b")
    k("create", "secret", "generic", "s", "--from-literal=p=q")
    k("create", "serviceaccount", "robot")
    k("create", "job", "j", "--image=busybox:1", "--", "true")
    k("create", "service", "clusterip", "web", "--tcp=80:8080")
    k("create", "role", "r", "--verb=get", "--resource=pods")
    assert k.json("configmap", "c")["data"] == {"a": "b"}
    assert k.json("secret", "s")["data"] == {"p": "cQ=="}
    assert k.json("job", "j")["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]
    assert k.json("service", "web")["spec"]["ports"][0]["targetPort"] == 8080
    assert k.json("role", "r")["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"


def test_dry_runs(k: Any) -> None:
    assert "(server dry run)" in k("create", "--dry-run=server", "-f", "-", stdin=widget())
    assert "NotFound" in k.fails("get", "wd", "a")
    k("create", "-f", "-", stdin=widget())
    k("delete", "wd", "a", "--dry-run=server")
    dry = ("--server-side", "--dry-run=server", "--force-conflicts", "-f", "-", "-o", "jsonpath={.spec.color}")
    assert k("apply", *dry, stdin=widget(color="blue")) == "blue"
    assert "+  color: blue" in k.differs("diff", "-f", "-", stdin=widget(color="blue"))
    assert k.json("wd", "a")["spec"]["color"] == "red"


def test_deleting_a_namespace_takes_all_of_it(kubectl: Any, namespace: str) -> None:
    kubectl("-n", namespace, "create", "-f", "-", stdin=widget())
    kubectl("-n", namespace, "create", "configmap", "c")
    kubectl("delete", "namespace", namespace)
    assert "NotFound" in kubectl.fails("get", "namespace", namespace)
    assert kubectl("get", "wd", "-A", "--field-selector", f"metadata.namespace={namespace}", "-o", "name") == ""
