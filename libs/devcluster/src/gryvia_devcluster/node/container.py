"""The life of one container: pull, start, probe, end, restart, stop.

One task runs the loop; `stop` and failed liveness probes only signal it. What happens is written into the record, and
`changed` tells the pod worker to publish it. The words of reasons and events are the kubelet's.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from gryvia_devcluster.node.backoff import Backoff, sleep_unless
from gryvia_devcluster.node.command import build_spawn, termination_file
from gryvia_devcluster.node.context import Context
from gryvia_devcluster.node.environment import ConfigError
from gryvia_devcluster.node.images import Image
from gryvia_devcluster.node.liveness import Probes
from gryvia_devcluster.node.mounts import MountError
from gryvia_devcluster.node.probes import Target, run_beside
from gryvia_devcluster.node.process.spawner import Process, Spawn, StartError
from gryvia_devcluster.node.state import ContainerRecord, Running, Terminated, Waiting
from gryvia_devcluster.node.termination import termination_message
from gryvia_devcluster.types import Json

_UNKNOWN = "The container could not be located when the pod was terminated"


class PodView(Protocol):
    """What a container may know of its pod."""

    @property
    def pod(self) -> Json: ...

    @property
    def folders(self) -> Mapping[str, Path]: ...


class Container:
    def __init__(
        self,
        context: Context,
        view: PodView,
        spec: Json,
        record: ContainerRecord,
        policy: str,
        changed: Callable[[], None],
    ) -> None:
        """`policy` is the restart policy of this very container: an init container's is never Always."""
        self.record = record
        self._context = context
        self._view = view
        self._spec = spec
        self._policy = policy
        self._publish = changed
        self._progress = asyncio.Event()
        self._over = False
        self._stopping = asyncio.Event()
        self._process: Process | None = None
        self._target: Target | None = None
        self._crashes = Backoff(context.settings.restart_backoff)

    async def run(self) -> None:
        """Until it has ended for good: by its restart policy or by `stop`."""
        try:
            await self._loop()
        finally:
            self._over = True
            self._changed()

    async def _loop(self) -> None:
        if self.record.has_ended and not await self._wait_for_restart(ran_for=0.0):
            return
        while not self._stopping.is_set():
            spawn = await self._prepare()
            if spawn is None:
                break
            began = self._context.clock.monotonic()
            await self._run_once(spawn)
            if not await self._wait_for_restart(self._context.clock.monotonic() - began):
                return

    async def until_started(self) -> None:
        """Returns when the startup probe has passed, or there will be no start."""
        while not self.record.started and not self._stopping.is_set() and not self._over:
            self._progress.clear()
            await self._progress.wait()

    async def stop(self, grace: float, why: str = "Stopping container") -> None:
        """preStop, SIGTERM, and SIGKILL when the grace period is over. Returns when the process has ended."""
        self._stopping.set()
        self._progress.set()
        if self._process is not None and not self._process.ended.done():
            self._event("Killing", f"{why} {self.record.name}")
        await self._terminate(grace)

    def kill(self) -> None:
        self._stopping.set()
        if self._process is not None:
            self._process.kill()

    async def execute(self, command: list[str]) -> tuple[bool, str]:
        """Run a command inside; whether it succeeded, and its output."""
        if self._target is None:
            return False, "the container is not running"
        answer = await run_beside(command, self._target, self._context.spawner)
        return answer.ok, answer.detail

    async def _prepare(self) -> Spawn | None:
        """Everything a start needs; waits and tries again while something is missing. None when stopped meanwhile."""
        pauses = Backoff(self._context.settings.image_backoff)
        pauses.failures = 1
        while True:
            image = self._find_image()
            if image is not None:
                try:
                    return build_spawn(
                        self._context, self._view.pod, self._spec, image, self._view.folders, self.record.restarts
                    )
                except (ConfigError, MountError) as error:
                    reason = "CreateContainerConfigError" if isinstance(error, ConfigError) else "CreateContainerError"
                    self._wait(reason, str(error))
                    self._event("Failed", f"Error: {error}", warning=True)
            if await sleep_unless(self._stopping, self._context.clock, pauses.next_delay(0.0)):
                return None

    def _find_image(self) -> Image | None:
        name, never = self.record.image, self._spec.get("imagePullPolicy") == "Never"
        image = self._context.images.find(name)
        if image is not None:
            return image
        if never:
            message = f'Container image "{name}" is not present with pull policy of Never: add it to images.yaml'
            self._wait("ErrImageNeverPull", message)
            self._event("ErrImageNeverPull", message, warning=True)
            return None
        message = self._context.images.missing(name)
        if isinstance(self.record.state, Waiting) and self.record.state.reason in ("ErrImagePull", "ImagePullBackOff"):
            self._wait("ImagePullBackOff", f'Back-off pulling image "{name}": ErrImagePull: {message}')
            self._event("BackOff", f'Back-off pulling image "{name}"')
        else:
            self._event("Pulling", f'Pulling image "{name}"')
            self._event("Failed", f'Failed to pull image "{name}": {message}', warning=True)
            self._wait("ErrImagePull", message)
        return None

    async def _run_once(self, spawn: Spawn) -> None:
        clock, record = self._context.clock, self.record
        self._event("Pulled", f'Container image "{record.image}" already present on machine')
        record.container_id = f"devcluster://{uuid4().hex}"
        self._event("Created", f"Created container: {record.name}")
        try:
            self._process = await self._context.spawner.start(spawn)
        except StartError as error:
            message = f"failed to create containerd task: {error}"
            self._event("Failed", f"Error: {message}", warning=True)
            record.state = Terminated(128, "StartError", None, clock.now(), record.container_id, message)
            self._changed()
            return
        record.state = Running(clock.now())
        self._event("Started", f"Started container {record.name}")
        self._target = self._make_target(spawn, self._process.pid)
        if self._stopping.is_set():
            self._process.kill()
        async with Probes(self._context, self._spec, record, self._target, self._changed, self._report, self._give_up):
            self._changed()
            code = await self._process.ended
        self._finish(code)

    def _finish(self, code: int) -> None:
        record, started = self.record, self.record.state
        code = 128 - code if code < 0 else code
        log = self._context.layout.log(self._view.pod["metadata"]["uid"], record.name, record.restarts)
        message = termination_message(
            self._spec, termination_file(self._context, self._view.pod, self._spec), log, code
        )
        record.state = Terminated(
            code,
            "Completed" if code == 0 else "Error",
            started.since if isinstance(started, Running) else None,
            self._context.clock.now(),
            record.container_id,
            message,
        )
        record.ready = record.started = False
        self._target = None
        self._changed()

    async def _wait_for_restart(self, ran_for: float) -> bool:
        """Whether to start again, after the back-off."""
        ended = self.record.state
        if self._stopping.is_set() or not isinstance(ended, Terminated) or not self._restarts(ended.exit_code):
            return False
        delay = self._crashes.next_delay(ran_for)
        if delay:
            meta, name = self._view.pod["metadata"], self.record.name
            where = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
            self._event("BackOff", f"Back-off restarting failed container {name} in pod {where}", warning=True)
            self.record.last = ended
            self._wait("CrashLoopBackOff", f"back-off {_span(delay)} restarting failed container={name} pod={where}")
            if await sleep_unless(self._stopping, self._context.clock, delay):
                self.record.state = ended
                return False
        self.record.last = ended
        self.record.restarts += 1
        self._context.layout.log(self._view.pod["metadata"]["uid"], self.record.name, self.record.restarts - 2).unlink(
            missing_ok=True
        )
        return True

    def _restarts(self, code: int) -> bool:
        return self._policy == "Always" or (self._policy == "OnFailure" and code != 0)

    async def _terminate(self, grace: float) -> None:
        process = self._process
        if process is None or process.ended.done():
            return
        ended = asyncio.Event()
        process.ended.add_done_callback(lambda _: ended.set())
        clock = self._context.clock
        deadline = clock.monotonic() + grace
        await self._pre_stop(ended, grace)
        process.signal(signal.SIGTERM, group=False)
        if not await sleep_unless(ended, clock, deadline - clock.monotonic()):
            process.kill()
            await ended.wait()

    async def _pre_stop(self, ended: asyncio.Event, grace: float) -> None:
        hook = (self._spec.get("lifecycle") or {}).get("preStop") or {}
        if pause := hook.get("sleep"):
            await sleep_unless(ended, self._context.clock, min(float(pause["seconds"]), grace))
        elif (command := hook.get("exec")) and self._target is not None:
            try:
                async with asyncio.timeout(grace):
                    ok, output = await self.execute(command["command"])
            except TimeoutError:
                ok, output = False, f"did not end within {grace:g}s"
            if not ok:
                self._event("FailedPreStopHook", f"PreStopHook failed: {output}", warning=True)

    def _changed(self) -> None:
        self._progress.set()
        self._publish()

    def _make_target(self, spawn: Spawn, pid: int) -> Target:
        ports = {p["name"]: p["containerPort"] for p in self._spec.get("ports") or () if p.get("name")}
        meta = self._view.pod["metadata"]
        folder = self._context.layout.container(meta["uid"], self.record.name)
        return Target(self._view.pod.get("status", {}).get("podIP", ""), ports, pid, spawn, folder)

    def _report(self, message: str) -> None:
        self._event("Unhealthy", message, warning=True)

    async def _give_up(self, kind: str, probe: Json) -> None:
        """A startup or liveness probe failed too often: end the process; the loop restarts it by its policy."""
        self._event("Killing", f"Container {self.record.name} failed {kind} probe, will be restarted")
        pod_grace = self._view.pod["spec"].get("terminationGracePeriodSeconds", 30)
        await self._terminate(float(probe.get("terminationGracePeriodSeconds", pod_grace)))

    def _wait(self, reason: str, message: str) -> None:
        self.record.state = Waiting(reason, message)
        self._changed()

    def settle(self) -> None:
        """Stopped while waiting: it has ended as it last did, or was never there."""
        record = self.record
        if isinstance(record.state, Waiting):
            now = self._context.clock.now()
            record.state = record.last or Terminated(137, "ContainerStatusUnknown", None, now, "", _UNKNOWN)

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._context.event(self._view.pod, reason, message, "Warning" if warning else "Normal")


def _span(seconds: float) -> str:
    """A duration in Go's words: 10s, 1m20s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
