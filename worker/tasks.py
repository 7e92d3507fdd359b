"""The function that messages name, for plain `rq worker`; our own worker calls its pipeline itself."""

from shared import logs
from shared.config import Settings
from shared.errors import SettingsError, StoreUnavailableError
from worker.message import MessageFailedError
from worker.pipeline import Pipeline
from worker.stop import StopFlag
from worker.wiring import open_pipeline


def process(job_id: str) -> None:
    """Make one attempt at a job, with connections of this call's own.

    Plain `rq worker` forks a process for each message, and a connection that crossed a fork gives wrong rows. What
    RQ is told of a failure is a code and one line (I2).
    """
    try:
        settings = Settings.load("DATABASE_URL", "REDIS_URL")
        redactor = logs.configure(settings, process="worker")
        with open_pipeline(settings, redactor=redactor, stop=StopFlag()) as pipeline:
            attempt(pipeline, job_id)
    except SettingsError as error:
        raise MessageFailedError(f"settings: {error}") from None


def attempt(pipeline: Pipeline, job_id: str) -> None:
    """Make one attempt at a job; raises MessageFailedError for RQ to show."""
    try:
        failure = pipeline.process(job_id)
    except StoreUnavailableError as error:
        raise MessageFailedError(f"store_unavailable: {error}") from None
    if failure is not None:
        raise MessageFailedError(f"{failure.reason}: {failure}")
