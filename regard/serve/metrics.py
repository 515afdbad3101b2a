"""Metrics for Prometheus: requests, batches and queues."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Counters of a server, without any content of requests."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.num_replies = 0
        """Number of replies with status 200 to requests."""
        self.requests = Counter(
            "regard_requests", "Requests.", ("route", "status"), registry=self._registry
        )
        self.seconds = Histogram(
            "regard_request_seconds",
            "Time to answer a request.",
            ("route",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self.in_progress = Gauge(
            "regard_requests_in_progress", "Requests in progress.", registry=self._registry
        )
        self._sources = Counter(
            "regard_sources", "Sources that were computed.", ("model",), registry=self._registry
        )
        self._batches = Histogram(
            "regard_batch_sources",
            "Sources in a batch.",
            ("model",),
            buckets=SIZES,
            registry=self._registry,
        )
        self._batch_seconds = Histogram(
            "regard_batch_seconds",
            "Time to compute a batch.",
            ("model",),
            buckets=SECONDS,
            registry=self._registry,
        )
        self._waiting = Gauge(
            "regard_waiting_sources",
            "Sources that wait for a batch.",
            ("model",),
            registry=self._registry,
        )

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests.labels(route, status).inc()
        self.seconds.labels(route).observe(seconds)
        self.num_replies += status == 200

    def count_refusal(self, status: int) -> None:
        """Count a request that was refused before its route was found."""
        self.requests.labels("refused", status).inc()

    def receiver(self, model: str) -> Callable[[int, float], None]:
        """Return a function that counts a batch of a model: its sources and its seconds."""
        sources, batches = self._sources.labels(model), self._batches.labels(model)
        batch_seconds = self._batch_seconds.labels(model)

        def count(num: int, seconds: float) -> None:
            sources.inc(num)
            batches.observe(num)
            batch_seconds.observe(seconds)

        return count

    def watch_queue(self, model: str, num_waiting: Callable[[], float]) -> None:
        """Read the number of sources that wait from a function."""
        self._waiting.labels(model).set_function(num_waiting)

    def render(self) -> bytes:
        """Return all metrics in the format of Prometheus."""
        return generate_latest(self._registry)
