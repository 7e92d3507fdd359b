"""What was signed and not understood is listed, shown safely, and replayed after a fix."""

import subprocess
from pathlib import Path

import pytest

from shared.config import child_environment
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import SCRIPT, Cli

GOOD = b'{"event": "job.completed", "job_id": "job_a", "status": "OK", "n": 1e400}'
"""A body that an older release did not understand."""
BAD = b'{"event": "job.exploded", "job_id": "job_b"}'
EVIL = b'\xef\xbb\xbf{"\xff\x1b[2J\x07", "u": "https://media.sume.com/a.png?signature=planted"}\r\n\xe2\x80\xae[bold]x[/]\x00'


def ids(cli: Cli, *options: str) -> list[int]:
    """Return what is listed."""
    return [entry["id"] for entry in cli("quarantine", "list", "--json", *options).json()["quarantine"]]


def test_the_list_has_the_contracts_shape(cli: Cli, subject: PostgresSubject) -> None:
    """Open ones first, and with --all those that were replayed."""
    assert cli("quarantine", "list").out == "nothing is in quarantine\n"
    assert cli("quarantine", "list", "--json").json() == {"quarantine": []}
    for body in (GOOD, BAD, BAD):
        subject.store.quarantine(body, reason="unknown_event")
    good, bad = subject.store.open_quarantine_ids()
    listed = cli("quarantine", "list", "--json").json()["quarantine"]
    assert [set(entry) for entry in listed] == [
        {"id", "reason", "count", "bytes", "first_seen", "last_seen", "replayed_at"}
    ] * 2
    assert (listed[0]["id"], listed[0]["count"], listed[0]["bytes"]) == (bad, 2, len(BAD))
    assert listed[0]["first_seen"].endswith("Z")
    subject.store.mark_replayed(bad)
    assert (ids(cli), ids(cli, "--all"), ids(cli, "--all", "--limit", "1")) == ([good], [good, bad], [good])
    table = cli("quarantine", "list", "--all").out
    assert "unknown_event" in table
    assert "there are more" in cli("quarantine", "list", "--all", "--limit", "1").err


def test_a_body_is_shown_safely(cli: Cli, subject: PostgresSubject) -> None:
    """No byte of it steers the terminal, no markup is read, and the query of a URL stays out; --json alike."""
    subject.store.quarantine(EVIL, reason="invalid_json")
    [number] = subject.store.open_quarantine_ids()
    shown, told = cli("quarantine", "show", str(number)), cli("quarantine", "show", str(number), "--json").json()
    for text in (shown.out, told["body"]):
        assert not {"\x1b", "\x07", "\x00", "\u202e", "\r"} & set(text)
        assert "[bold]x[/]" in text
        assert r"\xff" in text
        assert "https://media.sume.com/a.png?[secret]" in text
        assert "planted" not in text
    assert "invalid_json" in shown.out
    assert told["bytes"] == len(EVIL)


def test_raw_is_byte_for_byte(subject: PostgresSubject, tmp_path: Path) -> None:
    """For a file or another program, which gets nothing else."""
    subject.store.quarantine(EVIL, reason="invalid_json")
    [number] = subject.store.open_quarantine_ids()
    done = subprocess.run(
        [SCRIPT, "quarantine", "show", str(number), "--raw"],
        cwd=tmp_path,
        env=child_environment(DATABASE_URL=subject.database_url),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, EVIL, b"")


def test_replay_claims_what_is_understood_now(cli: Cli, subject: PostgresSubject) -> None:
    """Through the same door as a delivery, as one delivery, byte for byte; again it changes nothing."""
    for _ in range(3):
        subject.store.quarantine(GOOD, reason="unknown_event")
    [number] = subject.store.open_quarantine_ids()
    assert cli("quarantine", "replay", str(number)).out == "replayed: 1\n"
    job = subject.store.get_job("job_a")
    assert job is not None
    assert (job.state, job.event, job.deliveries, job.source) == ("claimed", "job.completed", 1, "webhook")
    assert subject.take("job_a").payload.encode() == GOOD
    assert cli("stats", "--json").json()["queue_depth"] == 1
    for again in (("replay", str(number)), ("replay", "--all"), ("replay", str(number), str(number))):
        ran = cli("quarantine", *again)
        assert (ran.code, ran.out) == (0, "replayed: 0\n")
    assert subject.store.get_job("job_a") is not None
    assert ids(cli) == []
    [entry] = cli("quarantine", "list", "--all", "--json").json()["quarantine"]
    assert (entry["count"], entry["replayed_at"] is not None) == (3, True)
    job = subject.store.get_job("job_a")
    assert job is not None
    assert job.deliveries == 1


def test_what_is_still_not_understood_stays(cli: Cli, subject: PostgresSubject) -> None:
    """The others are replayed, and exit status 1 says that one was not."""
    for body in (BAD, GOOD, EVIL, b'{"event": "job.completed"}', b'{"event": "webhook.test"}'):
        subject.store.quarantine(body, reason="unknown_event")
    bad, _, evil, nobody, _ = subject.store.open_quarantine_ids()
    ran = cli("quarantine", "replay", "--all")
    assert (ran.code, ran.out) == (1, "replayed: 2\n")
    for number, why in ((bad, "unknown_event"), (evil, "invalid_json"), (nobody, "no_job_id")):
        assert f"{number} is still not understood ({why})" in ran.err
    assert ids(cli) == [nobody, evil, bad]
    assert subject.store.get_job("job_b") is None
    assert cli("stats", "--json").json()["quarantined"] == 3


def test_replay_of_another_event_for_a_known_job_is_a_conflict(cli: Cli, subject: PostgresSubject) -> None:
    """The first event wins, here as anywhere."""
    subject.deliver("job_a", "job.failed")
    subject.store.quarantine(GOOD, reason="unknown_event")
    ran = cli("quarantine", "replay", "--all")
    assert (ran.code, ran.out) == (0, "replayed: 1\n")
    assert "claim.conflicted" in ran.err
    job = subject.store.get_job("job_a")
    assert job is not None
    assert (job.event, job.deliveries, job.conflict_with) == ("job.failed", 2, "job.completed")


def test_without_redis_the_claim_stands(cli: Cli, subject: PostgresSubject) -> None:
    """The sweep sends its message (I1)."""
    cli.set(redis_url="redis://127.0.0.1:1/0")
    subject.store.quarantine(GOOD, reason="unknown_event")
    ran = cli("quarantine", "replay", "--all")
    assert (ran.code, ran.out) == (0, "replayed: 1\n")
    assert "sweep" in ran.err
    assert subject.state("job_a") == "claimed"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "7"), 1),
        (("show", "7", "--raw"), 1),
        (("replay", "7"), 1),
        (("show", "0"), 2),
        (("show", "-1"), 2),
        (("show", "1_7"), 2),
        (("show", "\u0661"), 2),
        (("show", "9223372036854775808"), 2),
        (("show", "9" * 5000), 2),
        (("show", "job_a"), 2),
        (("replay", "x"), 2),
        (("replay",), 2),
        (("replay", "7", "--all"), 2),
        (("show", "7", "--raw", "--json"), 2),
        (("list", "--limit", "0"), 2),
    ],
)
def test_an_unknown_id_is_1_and_what_can_be_none_is_2(cli: Cli, arguments: tuple[str, ...], code: int) -> None:
    """One line says what is wrong."""
    ran = cli("quarantine", *arguments)
    assert (ran.code, len(ran.err.splitlines())) == (code, 1)
