"""Secrets are planted, everything is run, and every place is searched for them: none is found (I9)."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.leaks import places
from tests.leaks.planted import found_in, new
from tests.leaks.stage import Stage

Place = Callable[[Stage], Iterator[tuple[str, str]]]
PLACES: list[tuple[Place, str]] = [
    (places.logs, "job_raises"),
    (places.rows, "job_raises"),
    (places.messages, "job_raises"),
    (places.answers, "job_raises"),
    (places.pages, "job_raises"),
    (places.commands, "job_raises"),
    (places.elsewhere, "job_done"),
]
"""Where to look, and what must be there, so that looking at nothing proves nothing."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A system in which everything has happened."""
    stage = Stage(tmp_path_factory.mktemp("stage"))
    with stage.system:
        stage.play()
        yield stage


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("place", "known"), PLACES, ids=lambda value: getattr(value, "__name__", None))
def test_nothing_planted_comes_out(stage: Stage, place: Place, known: str) -> None:
    """Not a secret, not a signature, not a URL's query, not a field of a body, in any encoding of it."""
    texts = list(place(stage))
    assert any(known in text for _, text in texts)
    leaks = {where: names for where, text in texts if (names := found_in(text, stage.planted))}
    assert leaks == {}


def test_what_was_planted_was_there_to_leak(stage: Stage) -> None:
    """The rows hold body and queries where they are kept on purpose, and the alerts came."""
    with psycopg.connect(stage.system.postgres.url) as connection:
        kept = str(connection.execute("SELECT payload, status_url FROM sume_jobs").fetchall())
        quarantined = str(connection.execute("SELECT body FROM sume_quarantine").fetchall())
    in_rows = {"query", "body", "error-query", "status-query", "url-password"}
    assert in_rows <= set(found_in(kept, stage.planted))
    assert "body" in found_in(quarantined, stage.planted)
    assert any("job_failed" in alert for alert in stage.inbox.received)
    assert any("not-listed.example" in alert or "away.example" in alert for alert in stage.inbox.received)
    assert any(" is dead: " in alert for alert in stage.inbox.received)


def test_metrics_name_no_job(stage: Stage) -> None:
    """No label is of a job: every series is one of a fixed few."""
    text = dict(places.answers(stage))["/metrics"]
    series = [line.partition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    labels = {
        label.partition("=")[0] for line in series if "{" in line for label in line[line.index("{") + 1 : -1].split(",")
    }
    assert labels <= {"code", "kind", "le", "reason", "state", "role", "host", "position"}
    assert not any(job_id in text for (job_id,) in stage.job_ids())
    assert len(series) < 150


@pytest.mark.parametrize("disguise", [str, str.upper, quote, lambda s: b64encode(s.encode()).decode()], ids=str)
def test_the_search_finds(disguise: Callable[[str], str]) -> None:
    """What is searched for is found in the forms it may come out in."""
    secret = new("thing")
    assert found_in(f"x {disguise(secret)} y", {"thing": secret}) == ["thing"]
    assert found_in("planted-thing", {"thing": secret}) == []


def test_the_stage_is_whole(stage: Stage, tmp_path: Path) -> None:
    """Every process still runs after all that."""
    assert tmp_path.is_dir()
    assert stage.system.ended() == {}
