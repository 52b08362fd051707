"""What a controller measures, under controller-runtime's own metric names, so that existing dashboards and alerts work.

Each service has its own registry (no module-level state: several services may share a process).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gryvia_common.runtime.queue import WorkQueue

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
RESULTS = ("success", "error", "requeue", "requeue_after")


class ControllerMetrics:
    """The metrics of one controller named `name` (the kind, lower case)."""

    def __init__(self, registry: CollectorRegistry, name: str, shared: SharedMetrics) -> None:
        self._passes = {result: shared.reconcile_total.labels(name, result) for result in RESULTS}
        self._time = shared.reconcile_time.labels(name)
        self._errors = shared.reconcile_errors.labels(name)
        self._queue_time = shared.queue_duration.labels(name, name)
        self._work_time = shared.work_duration.labels(name, name)
        self.terminal_errors = shared.terminal_errors.labels(name)
        self.panics = shared.panics.labels(name)

    def passed(self, result: str, *, seconds: float, waited: float) -> None:
        self._passes[result].inc()
        self._time.observe(seconds)
        self._queue_time.observe(waited)
        self._work_time.observe(seconds)
        if result == "error":
            self._errors.inc()


class SharedMetrics:
    """The metric families of one process, labelled by controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by_controller = ["controller"]
        prefix = "controller_runtime"
        self.reconcile_total = Counter(
            f"{prefix}_reconcile_total", "Passes by result", [*by_controller, "result"], registry=registry
        )
        self.reconcile_time = Histogram(
            f"{prefix}_reconcile_time_seconds", "Seconds a pass took", by_controller, registry=registry, buckets=BUCKETS
        )
        self.reconcile_errors = Counter(
            f"{prefix}_reconcile_errors_total", "Passes that failed", by_controller, registry=registry
        )
        self.terminal_errors = Counter(
            f"{prefix}_terminal_reconcile_errors_total",
            "Passes that failed in a way only a person can mend",
            by_controller,
            registry=registry,
        )
        self.panics = Counter(
            f"{prefix}_reconcile_panics_total", "Passes that ended in a bug", by_controller, registry=registry
        )
        names = ["name", "controller"]
        self.queue_duration = Histogram(
            "workqueue_queue_duration_seconds", "Seconds a key waited", names, registry=registry, buckets=BUCKETS
        )
        self.work_duration = Histogram(
            "workqueue_work_duration_seconds", "Seconds a key was worked on", names, registry=registry, buckets=BUCKETS
        )
        self.requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server",
            ["code", "method", "resource"],
            registry=registry,
        )
        self.request_time = Histogram(
            "rest_client_request_duration_seconds",
            "Seconds a request to the API server took",
            ["verb"],
            registry=registry,
            buckets=BUCKETS,
        )

    def observe_request(self, verb: str, plural: str, code: int, seconds: float) -> None:
        """The Kube client's hook."""
        self.requests.labels(str(code), verb, plural).inc()
        self.request_time.labels(verb).observe(seconds)


class QueueCollector:
    """What a queue looks like at the moment of a scrape; costs nothing between scrapes."""

    def __init__(self, queues: Callable[[], dict[str, tuple[WorkQueue[Any], int]]]) -> None:
        self._queues = queues

    def collect(self) -> Iterable[Metric]:
        labels = ["name", "controller"]
        families = {
            "workqueue_depth": GaugeMetricFamily("workqueue_depth", "Keys that could run now", labels=labels),
            "workqueue_adds_total": GaugeMetricFamily("workqueue_adds_total", "Keys added", labels=labels),
            "workqueue_retries_total": GaugeMetricFamily("workqueue_retries_total", "Keys retried", labels=labels),
            "workqueue_unfinished_work_seconds": GaugeMetricFamily(
                "workqueue_unfinished_work_seconds", "Seconds of work in progress", labels=labels
            ),
            "workqueue_longest_running_processor_seconds": GaugeMetricFamily(
                "workqueue_longest_running_processor_seconds", "Seconds of the longest pass in progress", labels=labels
            ),
        }
        workers = GaugeMetricFamily("controller_runtime_active_workers", "Passes in progress", labels=["controller"])
        limit = GaugeMetricFamily(
            "controller_runtime_max_concurrent_reconciles", "Workers of the controller", labels=["controller"]
        )
        for name, (queue, concurrency) in self._queues().items():
            running = list(queue.running().values())
            values = (queue.statistics().ready, queue.adds, queue.retries, sum(running), max(running, default=0.0))
            for family, value in zip(families.values(), values, strict=True):
                family.add_metric([name, name], value)
            workers.add_metric([name], len(running))
            limit.add_metric([name], concurrency)
        return [*families.values(), workers, limit]


def gauge(registry: CollectorRegistry, name: str, documentation: str, read: Callable[[], float]) -> None:
    """A gauge read at scrape time."""
    Gauge(name, documentation, registry=registry).set_function(read)
