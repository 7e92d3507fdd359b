"""What `check` looks at, and what each finding means."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from shared import clock
from shared.claims import open_store
from shared.claims.facts import DatabaseFacts, read_facts
from shared.cli.handler_check import handler_problem
from shared.cli.sume_check import SumeAnswer, ask_sume
from shared.config import Settings
from shared.errors import AttemptError, QueueUnavailableError, StoreUnavailableError
from shared.queue import open_queue
from shared.storage import open_storage
from shared.storage.recognition import WrongStorageError, compare
from shared.views import polling_state

Outcome: TypeAlias = Literal["ok", "off", "warn", "fail"]

WARN_SHARE = 10
"""A clock off by more than this share of WEBHOOK_TOLERANCE_SECONDS is worth a warning."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing, and what to do about it."""

    name: str
    outcome: Outcome
    detail: str
    advice: str | None = None


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield a finding at a time; every look is bounded in time. The settings hold DATABASE_URL and REDIS_URL."""
    yield Finding("settings", "ok", "every value can be used")
    yield examine_signing_secret(settings)
    database = ask_database(settings)
    yield from examine_database(database)
    yield examine_redis(settings)
    yield examine_storage(settings)
    yield examine_handler(settings)
    sume = ask_sume(settings)
    yield examine_api_key(settings, sume)
    yield examine_alerts(settings)
    yield examine_operator_api(settings)
    server_clock = database.facts.clock if database.facts is not None else None
    yield examine_clock(settings, sume=sume, database=server_clock, asked_at=database.asked_at)


@dataclass(frozen=True, slots=True)
class DatabaseAnswer:
    """What the database said, or why it did not."""

    facts: DatabaseFacts | None
    problem: str
    asked_at: datetime
    """Our clock in the middle of asking."""


def ask_database(settings: Settings) -> DatabaseAnswer:
    """Ask the database about itself."""
    assert settings.database_url is not None  # noqa: S101 - `check` loads the settings with it needed
    before, started = clock.now(), time.monotonic()
    try:
        facts = read_facts(settings.database_url.get_secret_value())
    except StoreUnavailableError as error:
        return DatabaseAnswer(None, str(error), before)
    return DatabaseAnswer(facts, "", before + timedelta(seconds=(time.monotonic() - started) / 2))


def examine_signing_secret(settings: Settings) -> Finding:
    """Without one the receiver answers 500 to every delivery."""
    count = len(settings.signing_secrets)
    if not count:
        detail = "SUME_COM_WEBHOOK_SIGNING_SECRET is not set, so every delivery is refused"
        return Finding("signing secret", "fail", detail, "copy it from Sume's webhook settings")
    return Finding("signing secret", "ok", "1 secret" if count == 1 else f"{count} secrets, any of which may sign")


def examine_database(answer: DatabaseAnswer) -> Iterator[Finding]:
    """Judge the database, and its schema where it answered."""
    facts = answer.facts
    if facts is None:
        yield Finding("database", "fail", answer.problem, "see that DATABASE_URL is right and the server runs")
        yield Finding("schema", "fail", "unknown, as the database did not answer")
        return
    if facts.read_only:
        yield Finding("database", "fail", f"PostgreSQL {facts.server} is read-only", "use the primary server")
    else:
        yield Finding("database", "ok", f"PostgreSQL {facts.server}")
    if facts.schema == facts.wanted_schema:
        yield Finding("schema", "ok", f"version {facts.schema}")
    elif facts.schema is None:
        yield Finding("schema", "fail", "there is none yet", "run: sume-jobs migrate")
    else:
        detail = f"version {facts.schema}, and this release works with {facts.wanted_schema}"
        advice = "run: sume-jobs migrate" if facts.schema < facts.wanted_schema else "install the newer release"
        yield Finding("schema", "fail", detail, advice)


def examine_redis(settings: Settings) -> Finding:
    """Judge Redis; no worker listening is worth a warning, as nothing would be worked on."""
    try:
        with closing(open_queue(settings)) as queue:
            queue.ping()
            workers, depth = queue.workers(), queue.depth()
    except QueueUnavailableError as error:
        return Finding("redis", "fail", str(error), "see that REDIS_URL is right and the server runs")
    detail = f"queue {settings.queue_name}: {depth} waiting, {workers} workers listening"
    return Finding("redis", "ok", detail) if workers else Finding("redis", "warn", detail, "run: sume-jobs worker")


def examine_storage(settings: Settings) -> Finding:
    """See that it is the one the database knows, then publish a file as the worker would, and delete it."""
    storage = open_storage(settings)
    try:
        with closing(open_store(settings)) as store:
            compare(storage, store)
    except WrongStorageError as error:
        return Finding("storage", "fail", str(error))
    except (StoreUnavailableError, AttemptError):
        pass  # the database has a finding of its own, and the storage has it now
    try:
        storage.probe()
        free = storage.free_bytes()
    except AttemptError as error:
        return Finding("storage", "fail", str(error), "see that STORAGE_URL is right, writable and not full")
    if free < settings.storage_min_free_bytes:
        detail = f"{free} bytes free, fewer than STORAGE_MIN_FREE_BYTES: downloads wait"
        return Finding("storage", "fail", detail, "make room")
    return Finding("storage", "ok", f"files can be published under {settings.storage_path}")


def examine_handler(settings: Settings) -> Finding:
    """Import the handler as the worker does, in a process of its own."""
    if settings.handler is None:
        return Finding("handler", "off", "HANDLER is not set: files are stored, and nothing is called")
    problem = handler_problem()
    if problem is not None:
        return Finding("handler", "fail", problem, "run check in the folder that the workers run in")
    return Finding("handler", "ok", f"{settings.handler} can be imported")


def examine_api_key(settings: Settings, sume: SumeAnswer) -> Finding:
    """Judge the key by what Sume answered."""
    if settings.sume_api_key is None:
        return Finding("sume api", "off", f"polling is off: {polling_state(settings)}")
    if sume.problem is not None:
        return Finding("sume api", "fail", sume.problem, "see SUME_API_KEY and SUME_API_BASE_URL")
    return Finding("sume api", "ok", "the key is accepted")


def examine_alerts(settings: Settings) -> Finding:
    """Say who is told; nobody is disturbed by a test."""
    if not settings.alert_urls:
        return Finding("alerts", "off", "ALERT_URLS is not set: ERROR and dead jobs are only listed and logged")
    return Finding("alerts", "ok", f"{len(settings.alert_urls)} URLs, not tried")


def examine_operator_api(settings: Settings) -> Finding:
    """Say whether it is on."""
    if settings.ops_token is None:
        return Finding("operator api", "off", "OPS_TOKEN is not set")
    return Finding("operator api", "ok", "on")


def examine_clock(settings: Settings, *, sume: SumeAnswer, database: datetime | None, asked_at: datetime) -> Finding:
    """Compare our clock with Sume's, which signs deliveries, and with the database's, which times leases."""
    tolerance: timedelta = settings.seconds("webhook_tolerance")
    differences = []
    if sume.ahead is not None:
        differences.append(("Sume", sume.ahead))
    if database is not None:
        differences.append(("the database", database - asked_at))
    if not differences:
        return Finding("clock", "warn", "there is nothing to compare it with", "see that the machine runs NTP")
    detail = ", ".join(f"{abs(time).total_seconds():.1f} s from {whose}" for whose, time in differences)
    if sume.ahead is not None and abs(sume.ahead) > tolerance:
        return Finding("clock", "fail", f"{detail}: every delivery is refused as stale", "set the clock; run NTP")
    if any(abs(time) > tolerance / WARN_SHARE for _, time in differences):
        return Finding("clock", "warn", detail, "set the clock; run NTP")
    return Finding("clock", "ok", detail)
