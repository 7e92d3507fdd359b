"""What Prometheus is told: counters of the receiver, and gauges read from the claim store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from shared.claims.records import Stats
from shared.claims.watch import ROLES

BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
COMMIT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    """The counters of one process; with `shared_folder` every process's are added up when they are shown.

    The folder must also be in PROMETHEUS_MULTIPROC_DIR before prometheus_client is imported.
    No label names a job: the number of series stays small.
    """

    def __init__(self, *, shared_folder: str | None = None) -> None:
        self._shared_folder = shared_folder
        self._registry = CollectorRegistry()
        self._deliveries = Counter(
            "sume_deliveries", "Deliveries answered, by result", ["code"], registry=self._registry
        )
        self._by_code: dict[str, Counter] = {}
        claims = Counter("sume_claims", "Claims committed: new or duplicate", ["kind"], registry=self._registry)
        self._new, self._duplicate = claims.labels("new"), claims.labels("duplicate")
        self._conflicts = Counter(
            "sume_conflicts", "Claims that contradict what is kept for their job", registry=self._registry
        )
        self._batch_size = Histogram(
            "sume_claim_batch_size", "Claims in one commit", buckets=BATCH_SIZES, registry=self._registry
        )
        self._commit_seconds = Histogram(
            "sume_claim_commit_seconds", "Time of one commit", buckets=COMMIT_SECONDS, registry=self._registry
        )
        self._dropped = Counter(
            "sume_messages_dropped", "Messages left to the sweep because Redis was away", registry=self._registry
        )

    def delivery_answered(self, code: str) -> None:
        """Count one delivery by how it was answered."""
        counter = self._by_code.get(code)  # prometheus_client's own look-up of a label takes a lock and 2 µs
        if counter is None:
            counter = self._by_code[code] = self._deliveries.labels(code)
        counter.inc()

    def claims_committed(self, *, new: int, duplicate: int, conflicts: int) -> None:
        """Count the claims of one commit by what became of them."""
        self._new.inc(new)
        self._duplicate.inc(duplicate)
        self._conflicts.inc(conflicts)

    def batch_written(self, size: int, *, seconds: float) -> None:
        """Record one group commit."""
        self._batch_size.observe(size)
        self._commit_seconds.observe(seconds)

    def messages_dropped(self, count: int) -> None:
        """Count messages that were not sent to Redis."""
        self._dropped.inc(count)

    def render(self, gauges: "Gauges") -> bytes:
        """Return everything in Prometheus's text format."""
        registry = CollectorRegistry()
        if self._shared_folder is None:
            registry.register(Passed(self._registry.collect()))
        else:
            MultiProcessCollector(registry, path=self._shared_folder)  # type: ignore[no-untyped-call] # untyped there
        registry.register(Passed(gauges.families()))
        return generate_latest(registry)


@dataclass(frozen=True, slots=True)
class Gauges:
    """What the store and the queue count now; None where they could not be asked, and then not shown."""

    stats: Stats | None = None
    queue_depth: int | None = None
    secret_tags: tuple[str, ...] = ()
    """Of the signing secrets, in the order of the setting."""

    def families(self) -> Iterable[Metric]:
        """Yield each gauge that is known."""
        if self.stats is not None:
            yield labelled("sume_jobs", "Jobs by state", "state", self.stats.states)
            yield labelled("sume_jobs_waiting", "Claimed jobs by what they wait for", "reason", self.stats.waiting)
            circuits = {circuit.host: circuit.waiting for circuit in self.stats.circuits}
            yield labelled("sume_open_circuits", "Jobs that wait for an artifact host that fails", "host", circuits)
            yield GaugeMetricFamily(
                "sume_oldest_waiting_seconds",
                "Age of the oldest claimed job that is due",
                value=self.stats.oldest_waiting_seconds,
            )
            yield GaugeMetricFamily(
                "sume_unacknowledged_jobs", "ERROR jobs nobody was told of", value=self.stats.unacknowledged
            )
            yield GaugeMetricFamily("sume_quarantined_deliveries", "Bodies in quarantine", value=self.stats.quarantined)
            yield labelled(
                "sume_signing_secret_last_used_timestamp_seconds",
                "When a signing secret last signed a delivery, by its place in the setting; 0 for never",
                "position",
                {
                    str(place): seconds(self.stats.secrets_used.get(tag))
                    for place, tag in enumerate(self.secret_tags, 1)
                },
            )
            yield labelled(
                "sume_last_seen_timestamp_seconds",
                "When a scheduler, a worker last said that it lives; 0 for never",
                "role",
                {role: seconds(self.stats.last_seen.get(role)) for role in ROLES},
            )
            yield labelled(
                "sume_processes_alive",
                "Schedulers and workers that say that they live",
                "role",
                {role: self.stats.alive.get(role, 0) for role in ROLES},
            )
            yield GaugeMetricFamily(
                "sume_last_accepted_timestamp_seconds",
                "When a delivery was last answered 2xx; 0 for never",
                value=seconds(self.stats.last_accepted_at),
            )
        if self.queue_depth is not None:
            yield GaugeMetricFamily("sume_queue_depth", "Messages waiting in Redis", value=self.queue_depth)


def seconds(moment: datetime | None) -> float:
    """Return a time as Prometheus counts it, 0 for none."""
    return 0.0 if moment is None else moment.timestamp()


def labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return a gauge with one label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


class Passed(Collector):
    """Families that were collected already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._families
