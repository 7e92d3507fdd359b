"""What the receiver loads, which is most of the time of its start and of the memory it holds."""

import json
import sys
from pathlib import Path

from shared.config import child_environment
from shared.sandbox.process import Process

NOT_NEEDED = {"alembic", "apprise", "httpx", "requests", "sume_client", "typer", "urllib3"}
"""Clients and tools of other processes: each costs megabytes, and a twentieth of the start or more."""


def test_the_receiver_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    """Not through a module of ours that only another process needs whole."""
    program = "import json, sys, api.server; print(json.dumps(sorted(sys.modules)))"
    with Process([sys.executable, "-c", program], name="loading", folder=tmp_path, env=child_environment()) as process:
        assert process.wait() == 0
        loaded = {name.partition(".")[0] for name in json.loads(process.log())}
    assert {"fastapi", "psycopg"} <= loaded
    assert loaded & NOT_NEEDED == set()
