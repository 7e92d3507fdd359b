"""The receiver most people would write: a sync route, an SQLAlchemy session, the message sent in the request.

`python -m tests.bench.naive PORT DATABASE_URL REDIS_URL SECRET`
"""

import hashlib
import hmac
import json
import sys
from typing import Annotated

import rq
import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from redis import Redis
from rq.serializers import JSONSerializer
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

CLAIM = text("""
    INSERT INTO sume_jobs (job_id, event, status, payload) VALUES (:job_id, :event, :status, :payload)
    ON CONFLICT (job_id) DO UPDATE SET deliveries = sume_jobs.deliveries + 1, last_seen = now()
    RETURNING deliveries
""")


async def raw_body(request: Request) -> bytes:
    """Return the bytes that were signed."""
    return await request.body()


def create_app(database_url: str, redis_url: str, secret: str) -> FastAPI:
    """Return the app."""
    app = FastAPI()
    engine = create_engine("postgresql+psycopg://" + database_url.split("://", 1)[1])
    queue = rq.Queue("naive", connection=Redis.from_url(redis_url), serializer=JSONSerializer)

    @app.post("/webhooks/sume")
    def receive(request: Request, body: Annotated[bytes, Depends(raw_body)]) -> Response:
        message = request.headers["x-sume-timestamp"].encode() + b"." + body
        expected = "v1=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, request.headers["x-sume-signature"]):
            raise HTTPException(401)
        event = json.loads(body)
        with Session(engine) as session:
            facts = {key: event[key] for key in ("job_id", "event", "status")}
            deliveries = session.execute(CLAIM, {**facts, "payload": body.decode()}).scalar_one()
            session.commit()
        if deliveries == 1:
            queue.enqueue("worker.tasks.process", event["job_id"])
        return Response(status_code=204)

    @app.get("/livez")
    def livez() -> Response:
        return Response()

    return app


if __name__ == "__main__":
    port, *rest = sys.argv[1:]
    uvicorn.run(
        create_app(*rest), port=int(port), loop="uvloop", http="httptools", access_log=False, log_level="warning"
    )
