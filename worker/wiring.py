"""Where a worker's parts are put together from the settings."""

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from contextvars import copy_context
from datetime import timedelta
from functools import partial

from shared.alerts import open_alerts
from shared.claims import open_store
from shared.claims.hosts import ProbeTimes
from shared.config import Settings
from shared.logs import Redactor
from shared.queue import open_queue
from shared.storage import open_storage
from shared.storage.recognition import StorageGuard
from shared.sume.api import SumeApi
from worker.addresses import HostRules
from worker.attempt import Tools
from worker.beat import beating
from worker.download import Downloader
from worker.handler import load_handler
from worker.lease import Renewals
from worker.pipeline import Pipeline
from worker.publish import Publisher
from worker.stop import StopFlag

LONGEST_STATEMENT = timedelta(seconds=10)


@contextmanager
def open_pipeline(
    settings: Settings, *, redactor: Redactor, stop: StopFlag, name: str | None = None
) -> Iterator[Pipeline]:
    """Lend a pipeline; raises SettingsError for an unusable HANDLER, and for a storage that is the wrong one.

    A storage that cannot be looked at yet, or a database that is away, stops nothing: then it is recognised as soon
    as both answer, before the first job. One that turns out to be wrong sets `stop`, and is raised at the end.

    A worker that stays gives its name, and keeps a sign of life in the store while it has the pipeline.
    """
    handler = load_handler(settings.handler, redactor=redactor) if settings.handler else None
    key = settings.sume_api_key
    api = SumeApi(settings.sume_api_base_url, api_key=key.get_secret_value()) if key else None
    # A statement that hangs must leave time to renew the lease again.
    patience = min(LONGEST_STATEMENT, settings.seconds("lease") / 6)
    downloader = Downloader(
        HostRules.of(settings.artifact_hosts, allow_insecure=settings.artifact_allow_insecure),
        stall=settings.seconds("download_stall"),
        max_bytes=settings.artifact_max_bytes,
    )
    with (
        closing(open_store(settings, patience=patience)) as store,
        closing(open_queue(settings)) as queue,
        Renewals(settings.seconds("lease")) as renewals,
        beating(store, name=name) if name is not None else nullcontext(),
    ):
        storage = open_storage(settings)
        guard = StorageGuard(storage, store)
        recognised = guard.try_recognise()
        tools = Tools(
            store=store,
            publisher=Publisher(storage, downloader, settings.storage_min_free_bytes),
            guard=guard,
            concurrency=settings.download_concurrency,
            locate=lambda path: str(settings.storage_path / path),
            alerts=open_alerts(settings, store),
            api=api,
            handler=handler,
            probe_times=ProbeTimes(settings.seconds("retry_base"), settings.seconds("retry_max")),
        )
        over = threading.Event()
        if not recognised:
            watch = partial(guard.watch, over, refused=stop.set)
            threading.Thread(target=copy_context().run, args=(watch,), name="storage", daemon=True).start()
        try:
            yield Pipeline(tools, queue, settings, stop, renewals)
        finally:
            over.set()
            if api is not None:
                api.close()
        if guard.refused is not None:
            raise guard.refused
