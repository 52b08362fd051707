"""The pure parts of a node: expansion, quantities, images, paths, thresholds, names, back-off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gryvia_devcluster.node.addresses import AddressBlock
from gryvia_devcluster.node.backoff import Backoff
from gryvia_devcluster.node.environment import expand
from gryvia_devcluster.node.images import Images
from gryvia_devcluster.node.mounts import MountError, container_mounts, rewrite
from gryvia_devcluster.node.names import hosts_text, resolve_names
from gryvia_devcluster.node.probes import Threshold
from gryvia_devcluster.node.quantity import divide_up, parse_quantity

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(B)", "$(B)"),
        ("$A", "$A"),
        ("$(A)$(A)x", "11x"),
        ("$(", "$("),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


@given(st.text(alphabet="abc /-_.", max_size=30))
def test_text_without_a_dollar_stays_as_it_is(text: str) -> None:
    assert expand(text, {"a": "x"}) == text


@pytest.mark.parametrize(
    ("text", "milli"),
    [("500m", 500), ("1", 1000), ("1.5", 1500), ("2e3", 2_000_000), ("1Ki", 1_024_000), ("1k", 1_000_000), (2, 2000)],
)
def test_quantities(text: str | int, milli: int) -> None:
    assert parse_quantity(text) * 1000 == milli


def test_a_limit_divided_for_an_environment_is_rounded_up() -> None:
    assert divide_up(parse_quantity("1500m"), parse_quantity("1")) == 2
    assert divide_up(parse_quantity("1Gi"), parse_quantity("1Mi")) == 1024
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity("many")


def images(tmp_path: Path, text: str) -> Images:
    file = tmp_path / "images.yaml"
    file.write_text(text)
    return Images(file, tmp_path / "bin")


def test_a_users_image_comes_before_the_shipped_one(tmp_path: Path) -> None:
    found = images(tmp_path, 'images: [{image: "python:3*", entrypoint: ["mine"], workdir: /w}]')
    mine = found.find("python:3.12")
    assert mine is not None
    assert (mine.entrypoint, mine.workdir) == (("mine",), "/w")
    shipped = found.find("python:2.7")
    assert shipped is not None
    assert shipped.env["PATH"].startswith(str(tmp_path / "bin"))
    assert found.find("registry.example/team/python:3") is not None
    assert found.find("nobody/knows") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("images: [{entrypoint: [x]}]", r"images\[0\]: an entry needs `image`"),
        ("images: [{image: x, entrypoint: python}]", r"images\[0\].entrypoint: expected a list"),
        ("images: [{image: x, comand: [a]}]", r"images\[0\].comand: unknown field"),
        ("image: x", "expected `images:`"),
    ],
)
def test_a_malformed_images_file_names_entry_and_field(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        images(tmp_path, text)


def test_a_mount_path_is_replaced_as_a_path_only() -> None:
    mounts: Any = [
        {"source": "/real/data", "target": "/data", "read_only": False},
        {"source": "/real/sub", "target": "/data/sub", "read_only": False},
    ]
    assert rewrite("--in=/data/x --sub=/data/sub/y", mounts) == "--in=/real/data/x --sub=/real/sub/y"
    assert rewrite("/database /mnt/data /data-old /data", mounts) == "/database /mnt/data /data-old /real/data"


def test_a_sub_path_may_not_leave_its_volume(tmp_path: Path) -> None:
    pod: Json = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    container: Json = {"volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "../x"}]}
    with pytest.raises(MountError, match="must not contain"):
        container_mounts(pod, container, {"v": tmp_path}, {})


@given(st.integers(1, 4), st.integers(1, 4), st.lists(st.booleans(), max_size=40))
def test_a_probe_turns_only_after_as_many_equal_answers_in_a_row(
    success: int, failure: int, answers: list[bool]
) -> None:
    threshold = Threshold(success, failure)
    for number, answer in enumerate(answers):
        before = threshold.verdict
        turned = threshold.take(answer)
        needed = success if answer else failure
        recent = answers[max(number + 1 - needed, 0) : number + 1]
        agreed = len(recent) == needed and all(a == answer for a in recent)
        assert turned == (agreed and before != answer)


def test_restarts_back_off_from_at_once_to_five_minutes_and_are_forgiven() -> None:
    backoff = Backoff()
    assert [backoff.next_delay(1) for _ in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.next_delay(700) == 0


def test_names_of_services_with_an_address_and_without() -> None:
    def service(name: str, ip: str) -> Json:
        return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterIP": ip}}

    addresses = [{"ip": "127.1.0.1", "hostname": "w-0"}, {"ip": "127.1.0.2"}]
    endpoints = {("ns", "head"): {"subsets": [{"addresses": addresses}]}}
    names = resolve_names([service("web", "127.9.0.1"), service("head", "None")], endpoints)
    assert names == {
        "web.ns.svc.cluster.local": ["127.9.0.1"],
        "head.ns.svc.cluster.local": ["127.1.0.1", "127.1.0.2"],
        "w-0.head.ns.svc.cluster.local": ["127.1.0.1"],
    }
    own = hosts_text(names, "ns", [], "127.0.0.1 localhost")
    assert "127.9.0.1\tweb.ns.svc.cluster.local web web.ns web.ns.svc\n" in own
    other = hosts_text(names, "other", [], "")
    assert "127.9.0.1\tweb.ns.svc.cluster.local web.ns web.ns.svc\n" in other


def test_two_clusters_on_one_machine_have_different_addresses() -> None:
    with AddressBlock() as one, AddressBlock() as two:
        taken = {block.take_pod() for block in (one, two) for _ in range(300)}
        services = {block.take_service() for block in (one, two)}
        assert len(taken) == 600
        assert not taken & services
        assert all(one.owns(a) != two.owns(a) for a in taken | services)
