"""What RQ keeps of a message's beginning and end, so that rq-dashboard and `rq info` show it."""

from typing import Any

from rq import Queue
from rq.executions import Execution
from rq.job import JobStatus
from rq.worker import BaseWorker, WorkerStatus


def record_start(worker: BaseWorker, job: Any, queue: Queue) -> Execution:
    """Record that a worker begins with a message it has taken; raises RedisError.

    Until then the message stands in the intermediate queue, from where the scheduler brings it back.
    """
    ttl = worker.get_heartbeat_ttl(job)
    with worker.connection.pipeline() as pipeline:
        execution = Execution.create(job, ttl, pipeline=pipeline, worker_name=worker.name)
        worker.set_state(WorkerStatus.BUSY, pipeline=pipeline)
        job.prepare_for_execution(worker.name, pipeline=pipeline)
        pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
        pipeline.execute()
    return execution


def record_success(worker: BaseWorker, job: Any, execution: Any) -> None:
    """Record that the work came to its end; raises RedisError.

    RQ's own version also looks after dependents and repetitions, which our messages do not have, under a WATCH that
    makes it spin for as long as Redis is away.
    """
    lifespan = job.get_result_ttl(worker.default_result_ttl)
    with worker.connection.pipeline() as pipeline:
        worker.increment_successful_job_count(pipeline)
        worker.increment_total_working_time(job.ended_at - job.started_at, pipeline)
        job._handle_success(lifespan, pipeline=pipeline, **facts(worker, job, execution))  # noqa: SLF001 - as RQ does
        job.cleanup(lifespan, pipeline=pipeline, remove_from_queue=False)
        worker.cleanup_execution(job, pipeline=pipeline, execution=execution)
        worker.set_state(WorkerStatus.IDLE, pipeline=pipeline)
        pipeline.execute()


def record_failure(worker: BaseWorker, job: Any, execution: Any, *, line: str) -> None:
    """Record the failure as one line, where RQ would store a traceback (I2); raises RedisError.

    RQ's own version also looks after retries and dependents, which our messages do not have, and logs an error with
    a traceback when Redis goes away meanwhile.
    """
    with worker.connection.pipeline() as pipeline:
        job.set_status(JobStatus.FAILED, pipeline=pipeline)
        worker.increment_failed_job_count(pipeline)
        if job.started_at is not None:  # else Redis went away before the work began
            worker.increment_total_working_time(job.ended_at - job.started_at, pipeline)
        job._handle_failure(line, pipeline=pipeline, **facts(worker, job, execution))  # noqa: SLF001 - as RQ does
        worker.cleanup_execution(job, pipeline=pipeline, execution=execution)
        worker.set_state(WorkerStatus.IDLE, pipeline=pipeline)
        pipeline.execute()


def facts(worker: BaseWorker, job: Any, execution: Any) -> dict[str, Any]:
    """Return who worked on a message, and when."""
    return {
        "worker_name": worker.name,
        "execution_id": execution.id,
        "execution_started_at": execution.created_at,
        "execution_ended_at": job.ended_at,
    }
