"""The servers, databases and settings that tests are given.

A server missing on a laptop skips its tests; in CI (`CI=true`) it fails them.
"""

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from shared.claims.schema import migrate
from shared.config import Settings
from shared.sandbox.postgres import Postgres
from shared.sandbox.server import Server
from shared.sandbox.sume import Sume
from shared.sandbox.valkey import Valkey
from shared.sandbox.wheels import SandboxMissingError

# A shell that runs us in the background may have had us ignore Ctrl-C, which every process we start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI") == "true"  # noqa: TID251 - a fact about the test run, not a setting of ours
TEMPLATE = "sume_jobs_template"
SIGNING_SECRET = "throwaway-signing-secret"

MakeSettings = Callable[..., Settings]


def started(server: Server) -> Server:
    """Start a server of the sandbox; where its wheel is missing, fail in CI and skip elsewhere."""
    try:
        return server.start()
    except SandboxMissingError as error:
        if IN_CI:
            raise
        pytest.skip(str(error))


@pytest.fixture(autouse=True, scope="session")
def _no_settings_of_the_developer() -> Iterator[None]:
    """No test sees a setting from the environment it is run in."""
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(name.upper(), raising=False)
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for the whole run; a test that breaks it takes one of its own."""
    server = Postgres(options={"fsync": "off", "max_connections": "300"})
    started(server)
    yield server
    server.close()


@pytest.fixture(scope="session")
def valkey() -> Iterator[Valkey]:
    """A Redis-protocol server for the whole run; a test that breaks it takes one of its own."""
    server = Valkey()
    started(server)
    yield server
    server.close()


@pytest.fixture(scope="session")
def _migrated_template(postgres: Postgres) -> str:
    """A database with our schema, to be cloned: cheaper than a migration for each test."""
    run_sql(postgres, f"CREATE DATABASE {TEMPLATE}")
    migrate(postgres.url_of(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def database_url(postgres: Postgres, _migrated_template: str) -> Iterator[str]:
    """A migrated database of the test's own, dropped afterwards, whoever is still connected."""
    name = f"test_{secrets.token_hex(8)}"
    run_sql(postgres, f"CREATE DATABASE {name} TEMPLATE {_migrated_template}")
    yield postgres.url_of(name)
    run_sql(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_database_url(postgres: Postgres) -> Iterator[str]:
    """A database of the test's own without our schema, dropped afterwards."""
    name = f"test_{secrets.token_hex(8)}"
    run_sql(postgres, f"CREATE DATABASE {name}")
    yield postgres.url_of(name)
    run_sql(postgres, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """An empty Redis; what the test leaves in it is gone before the next one."""
    with redis.Redis.from_url(valkey.url) as client:
        client.flushall()
    return valkey.url


@pytest.fixture
def sume() -> Iterator[Sume]:
    """A simulated Sume that signs with SIGNING_SECRET; its `webhook_url` is for the test to set."""
    with Sume(secret=SIGNING_SECRET) as sume:
        yield sume


@pytest.fixture
def make_settings(tmp_path: Path) -> MakeSettings:
    """Return a maker of settings that reads no environment and no `.env`; overrides are named as the fields.

    Without overrides they hold a throwaway secret, a storage below `tmp_path`, and what loopback artifact hosts
    need, on a disk of any size; `database_url` and `redis_url` are given by the test that has them.
    """

    def make(**overrides: Any) -> Settings:
        values: dict[str, Any] = {
            "sume_com_webhook_signing_secret": SIGNING_SECRET,
            "storage_url": f"file://{tmp_path / 'artifacts'}",
            "artifact_hosts": "127.0.0.1",
            "artifact_allow_insecure": True,
            "storage_min_free_bytes": 0,
        }
        return Settings.load(_env_file=None, **(values | overrides))

    return make


def run_sql(postgres: Postgres, statement: str) -> None:
    """Run one statement as the superuser, outside a transaction."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(statement.encode())
