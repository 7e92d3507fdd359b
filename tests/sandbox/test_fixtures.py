"""What the fixtures promise to every other test."""

from pathlib import Path

import psycopg
import pytest
import redis

from shared.sandbox.postgres import Postgres
from tests.conftest import SIGNING_SECRET, MakeSettings


def test_database_is_migrated(database_url: str) -> None:
    """A test's database holds our schema and no job."""
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM sume_jobs").fetchone() == (0,)


@pytest.mark.parametrize("turn", [1, 2])
def test_database_is_fresh(database_url: str, turn: int) -> None:
    """What one test leaves in its database is not there for the next."""
    with psycopg.connect(database_url) as connection:
        connection.execute("CREATE TABLE left_behind ()")
    assert turn


@pytest.mark.parametrize("turn", [1, 2])
def test_redis_is_empty(redis_url: str, turn: int) -> None:
    """What one test leaves in Redis is not there for the next."""
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        client.set("left behind", turn)


def test_empty_database_has_no_schema(empty_database_url: str) -> None:
    """The other kind of database holds nothing of ours."""
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT to_regclass('sume_jobs')").fetchone() == (None,)


def test_settings_ignore_the_developer(
    make_settings: MakeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.env` in the working directory changes no setting of a test."""
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("QUEUE_NAME=the-developers\n", encoding="utf-8")
    settings = make_settings(max_attempts=2)
    assert settings.queue_name == "sume"
    assert settings.max_attempts == 2
    assert settings.signing_secrets == (SIGNING_SECRET.encode(),)
    assert settings.storage_path == tmp_path / "artifacts"


def test_password_is_in_the_url(postgres: Postgres) -> None:
    """The database URL of tests carries a real password, so that redaction is exercised everywhere."""
    wrong = postgres.url.replace(postgres.password, "wrong")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
