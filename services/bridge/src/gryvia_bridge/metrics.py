"""What the bridge measures. One set a bridge, in the registry of its process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class BridgeMetrics:
    """`lag`, `objects` and `active` are read at scrape time from what `Gauge.set_function` was given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.published = Counter(
            "bridge_published_total", "Messages stored in the stream", ["plural", "op"], registry=registry
        )
        self.conflicts = Counter(
            "bridge_conflicts_total",
            "Publishes that found another message than expected",
            ["plural"],
            registry=registry,
        )
        self.relists = Counter(
            "bridge_relists_total", "Complete lists asked of the API server", ["plural", "reason"], registry=registry
        )
        self.events = Counter("bridge_events_total", "Watch events received", ["plural"], registry=registry)
        self.watches = Counter("bridge_watches_total", "Watches begun", ["plural"], registry=registry)
        self.objects = Gauge("bridge_objects", "Living objects in the stream", ["plural"], registry=registry)
        self.lag = Gauge("bridge_lag_seconds", "Age of the oldest change that is not stored yet", registry=registry)
        self.active = Gauge("bridge_active", "1 for the bridge that publishes, 0 for a standby", registry=registry)
