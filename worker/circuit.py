"""What one attempt learns about artifact hosts: it keeps away from those that fail for everybody, and tells of others.

A host is asked freely until different jobs in a row fail there. Then its circuit is open: one job at a time probes it,
all others wait without using up an attempt, and the first file that comes from it closes the circuit. While no host
fails this costs nothing: what is known of them comes with the lease, and is written only when it changes.
"""

import threading
from dataclasses import dataclass, field
from typing import Protocol

from shared.claims.hosts import HostStore, ProbeTimes
from shared.claims.records import Lease
from shared.claims.states import Reason
from shared.errors import HeldError, StoreUnavailableError
from shared.logs import get_logger
from worker.failures import DownloadError

OPENS_AFTER = 5
"""Different jobs in a row: a single broken file, or a few, must not keep every job from its host."""


class CircuitOpenError(HeldError):
    """The host fails for everybody, and another job probes it: wait."""

    def __init__(self, host: str) -> None:
        super().__init__(
            Reason.DOWNLOAD_FAILED,
            f"{host} fails for every job: its circuit is open, and this job waits for a probe to succeed",
            host=host,
        )


class HostAlerts(Protocol):
    """The part of the alerts that tells of hosts."""

    def host_failing(self, host: str, *, error: str) -> bool:
        """See Alerts.host_failing."""
        ...


@dataclass(slots=True)
class Circuits:
    """The circuits as one attempt meets them; may be shared by its threads.

    A store that is away decides nothing: the host is asked, and what it did is not counted.
    """

    lease: Lease
    store: HostStore
    alerts: HostAlerts
    times: ProbeTimes
    _probing: dict[str, bool] = field(default_factory=dict)
    """Hosts whose circuit is open, and whether this attempt may ask them."""
    _failed: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def admit(self, host: str) -> None:
        """Return when the host may be asked; raise CircuitOpenError when not."""
        if not self.lease.failing_hosts.get(host):
            return
        with self._lock:
            if host not in self._probing:
                self._probing[host] = self._may_probe(host)
            if not self._probing[host]:
                raise CircuitOpenError(host)

    def failed(self, error: DownloadError) -> None:
        """Count what failed for the host's sake, once an attempt; other failures say nothing about it."""
        host = error.host
        with self._lock:
            if host is None or host in self._failed:
                return
            self._failed.add(host)
            try:
                opened = self.store.host_failed(
                    host,
                    job_id=self.lease.job_id,
                    token=self.lease.token,
                    opens_after=OPENS_AFTER,
                    times=self.times,
                )
            except StoreUnavailableError as unavailable:
                get_logger().warning("circuit.uncounted", host=host, error=str(unavailable))
                return
        if opened:
            get_logger().warning("circuit.opened", host=host, error=str(error))
            self.alerts.host_failing(host, error=str(error))

    def worked(self, hosts: tuple[str, ...]) -> None:
        """Close the circuit of each host that a whole file came through, and forget its failures."""
        with self._lock:
            for host in hosts:
                if host in self.lease.failing_hosts or host in self._failed:
                    self._forget(host)

    def _may_probe(self, host: str) -> bool:
        try:
            wait = self.store.take_probe(host, job_id=self.lease.job_id, token=self.lease.token, times=self.times)
        except StoreUnavailableError as error:
            get_logger().warning("circuit.unknown", host=host, error=str(error))
            return True
        if wait is None:
            get_logger().info("circuit.probed", host=host)
        return wait is None

    def _forget(self, host: str) -> None:
        try:
            closed = self.store.host_worked(host)
        except StoreUnavailableError as error:
            get_logger().warning("circuit.uncounted", host=host, error=str(error))
            return
        if closed:
            get_logger().info("circuit.closed", host=host)
