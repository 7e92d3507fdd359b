"""The limit of any FastAPI receiver: a route that does nothing, `python -m tests.bench.noop PORT`."""

import sys

import uvicorn
from fastapi import FastAPI, Response

app = FastAPI()


@app.post("/webhooks/sume")
async def accept() -> Response:
    """Answer 204 and nothing else."""
    return Response(status_code=204)


@app.get("/livez")
async def livez() -> Response:
    """Say that it serves."""
    return Response()


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
