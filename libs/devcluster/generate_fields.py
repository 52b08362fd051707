"""Writes api/fields.json: the fields of the built-in kinds, read from the Go types of the published API modules.

    go mod download k8s.io/api@v0.36.3 k8s.io/apimachinery@v0.36.3 k8s.io/apiextensions-apiserver@v0.36.3
    python libs/devcluster/generate_fields.py "$(go env GOMODCACHE)/k8s.io" v0.36.3

Run once per Kubernetes version; the result is data that is committed. Each type is
`{"f": {field: code}, "r": [required fields], "p": {protobuf number: [field, code, is it a pointer]}}`; an inlined struct has
its fields in "f" and an empty field name in "p". Codes: s string, i integer, b boolean, n number, t time, m time with
microseconds, q quantity, x int or string, y bytes (base64 in JSON), * anything, `{T` a map, `[T` a list, else a type's name.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOTS = {
    "core.v1": "Namespace Pod Service Endpoints ConfigMap Secret PersistentVolumeClaim PersistentVolume ServiceAccount "
    "Event Node ResourceQuota LimitRange Binding",
    "apps.v1": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch.v1": "Job CronJob",
    "autoscaling.v2": "HorizontalPodAutoscaler",
    "autoscaling.v1": "Scale",
    "coordination.v1": "Lease",
    "discovery.v1": "EndpointSlice",
    "networking.v1": "NetworkPolicy Ingress IngressClass",
    "policy.v1": "PodDisruptionBudget Eviction",
    "rbac.v1": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "storage.v1": "StorageClass",
    "scheduling.v1": "PriorityClass",
    "apiextensions.v1": "CustomResourceDefinition",
    "authorization.v1": "SelfSubjectAccessReview SelfSubjectRulesReview",
    "authentication.v1": "SelfSubjectReview",
    "meta.v1": "DeleteOptions",
}
PLAIN = {
    "string": "s", "bool": "b", "int": "i", "int32": "i", "int64": "i", "uint32": "i", "float64": "n", "byte": "y",
    "meta.v1.Time": "t", "meta.v1.MicroTime": "m", "resource.Quantity": "q", "intstr.IntOrString": "x", "types.UID": "s",
    "types.NodeName": "s", "runtime.RawExtension": "*", "meta.v1.FieldsV1": "*", "meta.v1.Duration": "s",
    "apiextensions.v1.JSONSchemaProps": "*", "apiextensions.v1.JSON": "*",
}  # fmt: skip
FIELD = re.compile(
    r'^\t(?:(?P<name>\w+)\s+)?(?P<type>[\w.*\[\]]+)\s+`json:"(?P<json>[^"]*)"(?:[^`]*? protobuf:"(?P<proto>[^"]*)")?'
)


class Source:
    """All structs and named types of the modules, by `group.version.Name`."""

    def __init__(self) -> None:
        self.structs: dict[str, list[tuple[str, str, str, bool]]] = {}
        self.aliases: dict[str, str] = {}

    def read(self, path: Path, package: str) -> None:
        text = path.read_text()
        imports = {}
        for alias, module in re.findall(r'^\t(?:(\w+) )?"(k8s\.io/[^"]+)"', text, re.MULTILINE):
            parts = module.split("/")
            short = ".".join(parts[-2:]) if re.fullmatch(r"v\d\w*", parts[-1]) else parts[-1]
            imports[alias or parts[-1]] = short
        for name, target in re.findall(r"^type (\w+) =? ?((?:map|\[|\*)?[\w.\[\]]+)$", text, re.MULTILINE):
            self.aliases[f"{package}.{name}"] = self.qualify(target, package, imports)
        for name in re.findall(r"^type (\w+) struct ?\{\}$", text, re.MULTILINE):
            self.structs[f"{package}.{name}"] = []
        for name, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            fields, optional = [], False
            for line in body.splitlines():
                optional = optional or line.strip() == "// +optional"
                if match := FIELD.match(line):
                    go = self.qualify(match["type"], package, imports)
                    fields.append((match["json"], go, match["proto"] or "", optional))
                    optional = False
            self.structs[f"{package}.{name}"] = fields

    @staticmethod
    def qualify(go: str, package: str, imports: dict[str, str]) -> str:
        def full(match: re.Match[str]) -> str:
            prefix, name = match[1], match[2]
            if prefix:
                return f"{imports[prefix[:-1]]}.{name}"
            return name if name in PLAIN or name == "map" else f"{package}.{name}"

        return re.sub(r"(\w+\.)?(\w+)", full, go)

    def code(self, go: str) -> str:
        go = go.lstrip("*")
        if go in PLAIN:
            return PLAIN[go]
        if go == "[]byte":
            return "y"
        if go.startswith("[]"):
            return "[" + self.code(go[2:])
        if match := re.fullmatch(r"map\[[\w.]+\](.*)", go):
            return "{" + self.code(match[1])
        return self.code(self.aliases[go]) if go in self.aliases else go

    def describe(self, name: str) -> dict[str, Any]:
        fields: dict[str, str] = {}
        required: list[str] = []
        wire: dict[str, list[Any]] = {}
        for tag, go, proto, optional in self.structs[name]:
            label, _, options = tag.partition(",")
            number, code = proto.split(",")[1] if proto else "", self.code(go)
            inline = "inline" in options or (not label and bool(proto))
            if label == "-":
                continue
            if inline and code == "meta.v1.TypeMeta":
                fields |= {"apiVersion": "s", "kind": "s"}
                continue
            if number:
                wire[number] = ["" if inline else label, code, go.startswith("*")]
            if inline:
                inner = self.describe(code)
                fields |= inner["f"]
                required += inner["r"]
                continue
            fields[label] = code
            if not optional and "omitempty" not in options:
                required.append(label)
        return {"f": dict(sorted(fields.items())), "r": sorted(set(required)), "p": wire}


def main(root: Path, version: str) -> None:
    source = Source()
    for path in sorted((root / f"api@{version}").glob("*/v*/types.go")):
        source.read(path, ".".join(path.parts[-3:-1]))
    for module, folder, package in (
        ("apimachinery", "pkg/apis/meta/v1", "meta.v1"),
        ("apiextensions-apiserver", "pkg/apis/apiextensions/v1", "apiextensions.v1"),
    ):
        for path in sorted((root / f"{module}@{version}" / folder).glob("*types*.go")):
            source.read(path, package)
    types: dict[str, dict[str, Any]] = {}
    waiting = [f"{package}.{kind}" for package, kinds in ROOTS.items() for kind in kinds.split()]
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = source.describe(name)
            codes = [*types[name]["f"].values(), *(entry[1] for entry in types[name]["p"].values())]
            waiting += [code.lstrip("[{") for code in codes if "." in code]
    target = Path(__file__).parent / "src/gryvia_devcluster/api/fields.json"
    lines = [f"{json.dumps(name)}: {json.dumps(types[name], separators=(',', ':'))}" for name in sorted(types)]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
