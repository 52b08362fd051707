"""Defaults and refusals of the built-in kinds, as a user sees them."""

from __future__ import annotations

from typing import Any

import pytest

from gryvia_devcluster.api.options import WriteOptions
from gryvia_devcluster.api.registry import Registry
from gryvia_devcluster.errors import ApiError

Json = dict[str, Any]
MERGE: Any = "application/merge-patch+json"
STRICT = "Strict"


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "i:1", **fields}


def template(*containers: Json, **spec: Any) -> Json:
    body = {"containers": list(containers) or [container()], **spec}
    return {"metadata": {"labels": {"app": "x"}}, "spec": body}


def create(api: Registry, group: str, plural: str, body: Json, name: str = "x", **options: Any) -> Json:
    rt = api.resource(group, plural)
    namespace = "default" if rt.namespaced else None
    return api.create(rt, namespace, {"metadata": {"name": name}, **body}, options=WriteOptions(**options))


def test_a_pod_gets_the_usual_defaults(api: Registry) -> None:
    probe = {"httpGet": {"port": 80}}
    floating = container(name="d", image="busybox", readinessProbe=probe, resources={"limits": {"cpu": "1"}})
    pod = create(api, "", "pods", {"spec": {"containers": [container(), floating], "volumes": [{"name": "v"}]}})
    spec = pod["spec"]
    assert (spec["restartPolicy"], spec["terminationGracePeriodSeconds"], spec["dnsPolicy"]) == (
        "Always",
        30,
        "ClusterFirst",
    )
    first, second = spec["containers"]
    assert (first["imagePullPolicy"], second["imagePullPolicy"]) == ("IfNotPresent", "Always")
    assert first["terminationMessagePath"] == "/dev/termination-log"
    assert second["readinessProbe"]["periodSeconds"] == 10
    assert second["readinessProbe"]["httpGet"] == {"port": 80, "path": "/", "scheme": "HTTP"}
    assert second["resources"]["requests"] == {"cpu": "1"}
    assert spec["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_a_job_gets_its_selector_and_its_pods_labels(api: Registry) -> None:
    job = create(api, "batch", "jobs", {"spec": {"template": template(restartPolicy="Never")}})
    uid = job["metadata"]["uid"]
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "x"
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)


def test_a_secret_takes_plain_text_and_a_namespace_its_label(api: Registry) -> None:
    secret = create(api, "", "secrets", {"stringData": {"a": "b"}})
    assert (secret["type"], secret["data"], "stringData" in secret) == ("Opaque", {"a": "Yg=="}, False)
    namespace = create(api, "", "namespaces", {}, "n")
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "n"}
    assert api.get(api.resource("", "serviceaccounts"), "n", "default")


def test_a_claim_without_a_class_gets_the_default_one(api: Registry) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    assert create(api, "", "persistentvolumeclaims", {"spec": spec})["spec"]["storageClassName"] == "standard"
    explicit = create(api, "", "persistentvolumeclaims", {"spec": {**spec, "storageClassName": ""}}, "y")
    assert explicit["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(
    ("group", "plural", "body", "field", "message"),
    [
        ("", "pods", {"spec": {}}, "spec.containers", "Required value"),
        ("", "pods", {"spec": {"containers": [{"name": "c"}]}}, "spec.containers[0].image", "Required value"),
        (
            "",
            "pods",
            {"spec": {"containers": [container(), container()]}},
            "spec.containers[1].name",
            'Duplicate value: "c"',
        ),
        (
            "",
            "pods",
            {"spec": {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]}},
            "spec.containers[0].volumeMounts[0].name",
            'Not found: "v"',
        ),
        (
            "",
            "pods",
            {"spec": {"restartPolicy": "Sometimes", "containers": [container()]}},
            "spec.restartPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
        ),
        (
            "",
            "pods",
            {"spec": {"containers": [container(resources={"limits": {"cpu": "lots"}})]}},
            "spec.containers[0].resources.limits[cpu]",
            'Invalid value: "lots"',
        ),
        (
            "batch",
            "jobs",
            {"spec": {"template": template()}},
            "spec.template.spec.restartPolicy",
            'Required value: valid values: "OnFailure", "Never"',
        ),
        (
            "batch",
            "jobs",
            {"spec": {"completionMode": "Indexed", "parallelism": 1, "template": template(restartPolicy="Never")}},
            "spec.completions",
            "Required value",
        ),
        ("apps", "deployments", {"spec": {"template": template()}}, "spec.selector", "Required value"),
        (
            "apps",
            "deployments",
            {"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": template()}},
            "spec.template.metadata.labels",
            'Invalid value: "{"app":"x"}": `selector` does not match template `labels`',
        ),
        ("", "services", {"spec": {}}, "spec.ports", "Required value"),
        ("", "persistentvolumeclaims", {"spec": {}}, "spec.accessModes", "Required value"),
    ],
)
def test_a_mistake_is_refused_with_its_field(
    api: Registry, group: str, plural: str, body: Json, field: str, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        create(api, group, plural, body)
    assert refused.value.code == 422
    found = {cause["field"]: cause["message"] for cause in refused.value.causes}
    assert found[field].startswith(message)


def test_wrong_types_and_unknown_fields_are_bad_requests(api: Registry) -> None:
    with pytest.raises(
        ApiError, match=r"cannot unmarshal string into Go struct field JobSpec\.spec\.parallelism of type int64"
    ):
        create(api, "batch", "jobs", {"spec": {"parallelism": "2", "template": template(restartPolicy="Never")}})
    body = {"spec": {"containers": [container(imag="x", ports=[{"containerPort": 1, "foo": 2}])]}}
    with pytest.raises(
        ApiError, match=r'"spec\.containers\[0\]\.imag", unknown field "spec\.containers\[0\]\.ports\[0\]\.foo"'
    ):
        create(api, "", "pods", body, field_validation=STRICT)
    assert "imag" not in create(api, "", "pods", body)["spec"]["containers"][0]


def test_a_null_is_the_same_as_nothing(api: Registry) -> None:
    pod = create(api, "", "pods", {"spec": {"nodeName": None, "containers": [container(env=None)]}})
    assert "nodeName" not in pod["spec"]
    assert "env" not in pod["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("group", "plural", "body", "patch", "message"),
    [
        (
            "",
            "pods",
            {"spec": {"containers": [container()]}},
            {"spec": {"hostname": "h"}},
            "pod updates may not change",
        ),
        (
            "batch",
            "jobs",
            {"spec": {"template": template(restartPolicy="Never")}},
            {"spec": {"template": {"spec": {"containers": [container(image="j:2")]}}}},
            "spec.template: Invalid value",
        ),
        (
            "apps",
            "statefulsets",
            {"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template(), "serviceName": "s"}},
            {"spec": {"serviceName": "t"}},
            "updates to statefulset spec for fields other than",
        ),
        ("", "configmaps", {"data": {"a": "b"}, "immutable": True}, {"data": {"a": "c"}}, "field is immutable"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    api: Registry, group: str, plural: str, body: Json, patch: Json, message: str
) -> None:
    create(api, group, plural, body)
    with pytest.raises(ApiError, match=message) as refused:
        api.patch(api.resource(group, plural), "default", "x", patch, MERGE)
    assert refused.value.code == 422


def test_a_pod_may_be_bound_and_get_another_image(api: Registry) -> None:
    create(api, "", "pods", {"spec": {"containers": [container()]}})
    rt = api.resource("", "pods")
    api.patch(rt, "default", "x", {"spec": {"nodeName": "n"}}, MERGE)
    api.patch(rt, "default", "x", {"spec": {"containers": [container(image="i:2")]}}, MERGE)
    with pytest.raises(ApiError):
        api.patch(rt, "default", "x", {"spec": {"nodeName": "other"}}, MERGE)


def test_a_suspended_job_that_has_not_started_may_get_another_template(api: Registry) -> None:
    create(api, "batch", "jobs", {"spec": {"suspend": True, "template": template(restartPolicy="Never")}})
    patch = {"spec": {"template": {"spec": {"containers": [container(image="j:2")]}}}}
    rt = api.resource("batch", "jobs")
    job = api.patch(rt, "default", "x", patch, MERGE)
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "j:2"


def test_a_crd_must_be_named_after_its_type(api: Registry) -> None:
    definition = api.get(api.resource("apiextensions.k8s.io", "customresourcedefinitions"), None, "widgets.example.com")
    with pytest.raises(ApiError, match=r"metadata\.name: Invalid value"):
        create(
            api, "apiextensions.k8s.io", "customresourcedefinitions", {"spec": definition["spec"]}, "other.example.com"
        )


def test_an_owner_reference_needs_all_of_its_fields(api: Registry) -> None:
    meta = {"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}
    with pytest.raises(ApiError) as refused:
        api.create(api.resource("", "configmaps"), "default", {"metadata": meta})
    assert refused.value.causes[0]["field"] == "metadata.ownerReferences.uid"
