"""etcd, kube-apiserver and, as wanted, kube-controller-manager and kube-scheduler on free loopback ports in one folder.

Invariant: `start` returns only when the API server answers /readyz and (with controllers) a new namespace has got its
ServiceAccount, so whoever comes next waits for nothing. Users are those of a tokens file, made before the start: `admin` in
system:masters, the components, and whom the caller names. Every request is in the audit log (`audit`), so a test can
count what a service asked. etcd does not sync to disk: this cluster is for tests and its data is worth nothing.

Synchronous on purpose: one cluster serves a whole test session, which outlives each test's event loop.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tools.realcluster.programs import Failed, Program, find_programs

Json = dict[str, Any]

READY_SECONDS = 60.0
_POLL_SECONDS = 0.05
_ACCOUNT_SECONDS = 24 * 3600
_COMPONENTS = {
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


class RealCluster:
    """`with RealCluster(folder) as cluster: cluster.url, cluster.token, cluster.ca, cluster.kubeconfig`.

    `users` are further users and their groups; `tokens[name]` is the token of each. `controllers` starts kube-controller-manager
    and `scheduler` kube-scheduler. `api_flags` are appended to the flags of kube-apiserver, `controller_flags` to those of
    kube-controller-manager. Raises NotBuilt when the programs are not there, Failed when one does not come up.
    """

    def __init__(
        self,
        folder: Path,
        *,
        controllers: bool = True,
        scheduler: bool = False,
        users: Mapping[str, Sequence[str]] | None = None,
        api_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
    ) -> None:
        self.folder = folder.absolute()
        self.programs: dict[str, Program] = {}
        self.tokens = {name: secrets.token_urlsafe(24) for name in ("admin", *_COMPONENTS, *(users or {}))}
        self._groups = {"admin": ("system:masters",), **_COMPONENTS, **(users or {})}
        self._controllers = controllers
        self._scheduler = scheduler
        self._api_flags = api_flags
        self._controller_flags = controller_flags
        self._etcd_port, self._peer_port, self.port = _free_ports(3)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def token(self) -> str:
        """The admin's."""
        return self.tokens["admin"]

    @property
    def ca(self) -> Path:
        """What the server's certificate is checked with."""
        return self.folder / "pki" / "apiserver.crt"

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.kubeconfig_of("admin")

    def kubeconfig_of(self, user: str) -> Path:
        path = self.folder / f"kubeconfig-{user.replace(':', '-')}"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(json.dumps(self._kubeconfig(user), indent=1))
        return path

    def kubeconfig_of_account(self, namespace: str, name: str) -> Path:
        """Of a ServiceAccount that is there, with a token of its own as a pod would have one: it may do what RBAC gives it."""
        user = f"system:serviceaccount:{namespace}:{name}"
        asked = {"spec": {"expirationSeconds": _ACCOUNT_SECONDS}}
        answer = self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", asked)
        self.tokens[user] = answer["status"]["token"]
        return self.kubeconfig_of(user)

    def kubectl(self, *arguments: str) -> str:
        """What kubectl, the environment's or else the PATH's, prints as admin. CalledProcessError when it fails."""
        beside = Path(sys.executable).parent / "kubectl"
        program = str(beside) if beside.exists() else "kubectl"
        command = [program, f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def __enter__(self) -> RealCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        binaries = find_programs()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_files()
        try:
            self._run("etcd", binaries, self._etcd_flags())
            self._run("kube-apiserver", binaries, self._server_flags())
            self._until("kube-apiserver", "/readyz")
            if self._controllers:
                self._run("kube-controller-manager", binaries, self._manager_flags())
            if self._scheduler:
                config = self.kubeconfig_of("system:kube-scheduler")
                self._run(
                    "kube-scheduler", binaries, [f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"]
                )
            if self._controllers:
                self._until("kube-controller-manager", "/api/v1/namespaces/default/serviceaccounts/default")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """In reverse, so that nobody logs the loss of what it talks to."""
        for program in reversed(self.programs.values()):
            program.stop()
        self.programs.clear()

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """One call as admin. urllib.error.HTTPError for a refusal."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cafile=str(self.ca))
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            raw = answer.read()
        try:
            parsed: Json = json.loads(raw)
        except ValueError:
            return {"text": raw.decode()}
        return parsed

    def compact(self) -> None:
        """Make etcd forget all versions but the newest, as it does every five minutes by itself: what follows are real 410s."""
        url = f"http://127.0.0.1:{self._etcd_port}/v3/kv"
        # A write first: the newest version of all is never forgotten.
        written = _post(f"{url}/put", {"key": "Y29tcGFjdGlvbg==", "value": ""})
        _post(f"{url}/compaction", {"revision": written["header"]["revision"], "physical": True})

    def audit(self) -> Iterator[Json]:
        """Every request so far, as audit events."""
        with (self.folder / "audit.log").open() as file:
            for line in file:
                with contextlib.suppress(ValueError):  # the last line may be half written
                    yield json.loads(line)

    def _run(self, name: str, binaries: Mapping[str, Path], flags: Sequence[str]) -> None:
        self.programs[name] = Program(name, [str(binaries[name]), *flags], self.folder)

    def _write_files(self) -> None:
        rows = [f'{self.tokens[name]},{name},{name},"{",".join(groups)}"' for name, groups in self._groups.items()]
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text("\n".join(rows) + "\n")
        (self.folder / "audit-policy.json").write_text(json.dumps(_AUDIT_POLICY))
        key = self.folder / "service-account.key"
        if not key.exists():
            openssl = shutil.which("openssl")
            if openssl is None:
                raise Failed("openssl is needed to make the key of the ServiceAccount tokens: install openssl")
            subprocess.run([openssl, "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)

    def _etcd_flags(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        return [
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _server_flags(self) -> list[str]:
        key = self.folder / "service-account.key"
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--cert-dir={self.folder / 'pki'}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=198.19.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--audit-log-maxsize=4000",
            *self._api_flags,
        ]

    def _manager_flags(self) -> list[str]:
        config = self.kubeconfig_of("system:kube-controller-manager")
        return [
            f"--kubeconfig={config}",
            "--secure-port=0",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.folder / 'service-account.key'}",
            f"--root-ca-file={self.ca}",
            "--enable-hostpath-provisioner=true",
            # Its default of 20 a second hides what is measured.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *self._controller_flags,
        ]

    def _kubeconfig(self, user: str) -> Json:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user, "namespace": "default"}}],
        }

    def _until(self, name: str, path: str) -> None:
        """Until the API server answers `path` with success."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            for program in self.programs.values():
                program.check()
            try:
                self.request("GET", path)
                return
            except (OSError, ValueError) as error:  # not there yet; HTTPError and SSLError are OSErrors
                if time.monotonic() > deadline:
                    last = self.programs[name].last_lines()
                    raise Failed(f"{name} was not ready after {READY_SECONDS:.0f} s ({error}): {last}") from error
            time.sleep(_POLL_SECONDS)


def _post(url: str, body: Json) -> Json:
    request = urllib.request.Request(url, data=json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=10) as answer:
        found: Json = json.loads(answer.read())
    return found


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
