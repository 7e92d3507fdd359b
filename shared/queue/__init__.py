"""The only producer of Redis messages."""

from shared.queue.connection import connect
from shared.queue.loop_queue import LoopQueue
from shared.queue.messages import FUNCTION, TIMEOUT_GRACE, InertJob, job_id_of, message_id
from shared.queue.queue import Queue, open_queue

__all__ = [
    "FUNCTION",
    "TIMEOUT_GRACE",
    "InertJob",
    "LoopQueue",
    "Queue",
    "connect",
    "job_id_of",
    "message_id",
    "open_queue",
]
