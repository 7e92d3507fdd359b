"""The work of one attempt, under a lease: list the files, store them, tell people and the handler."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from shared.alerts import Alerts
from shared.claims.hosts import ProbeTimes
from shared.claims.records import Lease
from shared.claims.states import Reason
from shared.claims.store import LeaseStore
from shared.errors import AttemptError, PermanentError
from shared.event import StoredArtifact
from shared.storage.recognition import StorageGuard
from shared.sume.payload import error_line, parse_payload
from worker.artifacts import store_artifacts
from worker.circuit import Circuits
from worker.failures import ExpiredUrlError
from worker.handler import Handler, Job, JobArtifact
from worker.lease import LeaseKeeper
from worker.listing import Listing, ResultApi, list_artifacts, renew_urls
from worker.publish import Publisher


@dataclass(frozen=True, slots=True)
class Tools:
    """What an attempt works with; made once for a process."""

    store: LeaseStore
    publisher: Publisher
    guard: StorageGuard
    concurrency: int
    locate: Callable[[str], str]
    """Turns a path below the storage root into the one a handler can open."""
    alerts: Alerts
    api: ResultApi | None
    """None without SUME_API_KEY."""
    handler: Handler | None
    probe_times: ProbeTimes
    """How often an artifact host that fails for everybody is tried."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an attempt achieved."""

    artifacts: tuple[StoredArtifact, ...]
    acknowledged: bool
    """Somebody was told of the job: a handler ran, or an alert was delivered."""


def work_on(lease: Lease, *, tools: Tools, keeper: LeaseKeeper) -> Work:
    """Do everything a job needs but its outcome; whatever must not go on raises.

    Raises AttemptError, LeaseLostError, ShutdownError, or RQ's timeout.
    """
    told = lease.acknowledged
    artifacts: tuple[StoredArtifact, ...] = ()
    if lease.status == "ERROR":
        told = told or tell_people(lease, tools=tools, keeper=keeper)
    else:
        artifacts = store_files(lease, tools=tools, keeper=keeper)
    keeper.check()
    if tools.handler is not None:
        tools.handler.call(describe(lease, artifacts, tools=tools))
        told = True
    return Work(artifacts, told)


def store_files(lease: Lease, *, tools: Tools, keeper: LeaseKeeper) -> tuple[StoredArtifact, ...]:
    """List, download and publish a job's files; expired URLs are exchanged for fresh ones once."""
    tools.guard.require()
    listing = list_artifacts(lease, api=tools.api)
    circuits = Circuits(lease, tools.store, tools.alerts, tools.probe_times)
    recorded = list(lease.artifacts)

    def record(artifact: StoredArtifact) -> None:
        if len(listing.artifacts) == 1 and tools.handler is None:
            return  # `finish` comes next, and records it in the round trip it needs anyway
        keeper.write(partial(tools.store.record_artifact, lease.job_id, artifact, token=lease.token))
        recorded[:] = [known for known in recorded if known.index != artifact.index] + [artifact]

    def store(listing: Listing) -> tuple[StoredArtifact, ...]:
        return store_artifacts(
            listing.artifacts,
            lease=replace(lease, artifacts=tuple(recorded)),
            publisher=tools.publisher,
            circuits=circuits,
            concurrency=tools.concurrency,
            check=keeper.check,
            record=record,
        )

    try:
        return store(listing)
    except ExpiredUrlError as expired:
        if listing.fresh:
            raise
        return store(fresh_urls(listing, lease=lease, api=tools.api, otherwise=expired))


def fresh_urls(listing: Listing, *, lease: Lease, api: ResultApi | None, otherwise: AttemptError) -> Listing:
    """Return the listing with fresh URLs; where Sume cannot be asked, the expired ones are what failed."""
    try:
        return renew_urls(listing, lease=lease, api=api)
    except PermanentError as error:
        if error.reason != Reason.NO_ARTIFACT_LIST:
            raise
        raise otherwise from None


def tell_people(lease: Lease, *, tools: Tools, keeper: LeaseKeeper) -> bool:
    """Alert that Sume could not render the job, and keep at once that somebody knows, so that no rerun repeats it."""
    error = error_line(parse_payload(lease.payload).get("error"))
    told = tools.alerts.job_failed(lease.job_id, event=lease.event, error=error)
    if told:
        keeper.write(lambda: tools.store.acknowledge([lease.job_id]) >= 0)
    return told


def describe(lease: Lease, artifacts: tuple[StoredArtifact, ...], *, tools: Tools) -> Job:
    """Return the job as its handler sees it."""
    payload = parse_payload(lease.payload)
    return Job(
        job_id=lease.job_id,
        event=lease.event,
        status=lease.status,
        payload=payload,
        error=error_line(payload.get("error")) if lease.status == "ERROR" else None,
        artifacts=tuple(
            JobArtifact(
                index=stored.index,
                path=tools.locate(stored.path),
                bytes=stored.bytes,
                sha256=stored.sha256,
                content_type=stored.content_type,
                type=stored.type,
            )
            for stored in artifacts
        ),
        attempt=lease.attempt,
    )
