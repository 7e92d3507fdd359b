"""What the receiver loads, which is most of the time of its start and of the memory it holds."""

import gc
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import api
from api.__main__ import serve
from api.garbage import THRESHOLDS
from shared.config import child_environment
from shared.sandbox.process import Process
from tests.conftest import MakeSettings

NOT_NEEDED = {"alembic", "apprise", "httpx", "requests", "rich", "sume_client", "typer", "urllib3"}
"""Clients and tools of other processes, each some megabytes and a twentieth of the start or more."""

MADE = """
from api.server import create_app
from shared.config import Settings
create_app(Settings.load(_env_file=None, database_url="postgresql://nobody:pw@127.0.0.1:1/none", ops_token="t",
                         redis_url="redis://127.0.0.1:1/0"))
""".strip()


def test_the_receiver_loads_nothing_it_does_not_need(tmp_path: Path) -> None:
    """Not through a module of ours that only another process needs whole."""
    program = f"import json, sys\n{MADE}\nprint(json.dumps(sorted(sys.modules)))"
    with Process([sys.executable, "-c", program], name="loading", folder=tmp_path, env=child_environment()) as process:
        assert process.wait() == 0
        modules = json.loads(process.log())
    loaded = {name.partition(".")[0] for name in modules}
    assert {"fastapi", "psycopg"} <= loaded
    assert loaded & NOT_NEEDED == set()
    assert "pydantic.v1" not in modules, "an endpoint has a parameter that FastAPI reads"


def test_the_receiver_is_loaded_while_the_garbage_collector_seldom_works(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go through every module that is loaded again and again, and find nothing."""
    before = gc.get_threshold()
    found: list[tuple[int, int, int]] = []

    def begin(*_: Any, **__: Any) -> int:
        found.append(gc.get_threshold())
        return 0

    monkeypatch.setattr(api, "server", SimpleNamespace(serve=begin), raising=False)
    try:
        serve(make_settings(), listeners=[])
    finally:
        gc.set_threshold(*before)
    assert found == [THRESHOLDS]
