"""What `list`, `show` and `stats` promise."""

from datetime import timedelta

from shared.claims.records import JobFilter
from shared.claims.states import Reason
from shared.views import job_view, page_view
from tests.claims.postgres_subject import PostgresSubject
from tests.cli.conftest import Cli
from tests.conformance.hosts import HOST, OPENS_AFTER, open_circuit, wait_for_host
from tests.conformance.leasing import FILE, bring_to

HOUR = timedelta(hours=1)
EVIL = "[bold red]x[/] \x1b]0;owned\x07\x1b[2J \u202e\x9b31m"


def test_jobs_that_need_a_person_lead_the_list(cli: Cli, subject: PostgresSubject) -> None:
    """The table and the JSON have the same order, and mark what is unusual."""
    bring_to(subject, "job_dead", "dead")
    subject.deliver("job_error", "job.failed")
    subject.let_pass(HOUR)
    bring_to(subject, "job_done", "done")
    subject.deliver("job_done", "job.failed")
    lines = cli("list").out.splitlines()
    order = [next(n for n, line in enumerate(lines) if job in line) for job in ("job_error", "job_dead", "job_done")]
    assert order == sorted(order)
    assert "not acknowledged" in lines[order[0]]
    assert "integrity_failed" in lines[order[1]]
    assert "1 h ago" in lines[order[1]]
    assert "redelivered" in lines[order[2]]
    assert "conflict: job.failed" in lines[order[2]]
    printed = cli("list", "--json").json()
    assert [job["job_id"] for job in printed["jobs"]] == ["job_error", "job_dead", "job_done"]


def test_the_json_is_the_operator_apis(cli: Cli, subject: PostgresSubject) -> None:
    """One shape for both."""
    bring_to(subject, "job_a", "done")
    assert cli("list", "--json").json() == page_view(subject.store.list_jobs(JobFilter()))
    job = subject.store.get_job("job_a")
    assert job is not None
    assert cli("show", "job_a", "--json").json() == job_view(job)


def test_the_list_can_be_filtered_and_cut(cli: Cli, subject: PostgresSubject) -> None:
    """Every option narrows it; what is cut can be gone on with."""
    bring_to(subject, "job_done", "done")
    subject.deliver("job_error", "job.failed")
    subject.deliver("job_twice")
    subject.deliver("job_twice")

    def ids(*options: str) -> list[str]:
        return [job["job_id"] for job in cli("list", "--json", *options).json()["jobs"]]

    assert ids("--state", "done") == ["job_done"]
    assert ids("--status", "ERROR") == ["job_error"]
    assert ids("--redelivered") == ["job_twice"]
    assert ids("--limit", "1") == ["job_error"]
    cursor = cli("list", "--json", "--limit", "1").json()["next_cursor"]
    assert ids("--cursor", cursor) == ["job_twice", "job_done"]
    assert cursor in cli("list", "--limit", "1").err


def test_an_empty_list_says_so(cli: Cli) -> None:
    """And is an empty list for scripts."""
    assert cli("list").out == "no jobs\n"
    assert cli("list", "--json").json() == {"jobs": [], "next_cursor": None}


def test_a_job_is_shown_with_files_and_timeline(cli: Cli, subject: PostgresSubject) -> None:
    """Whole paths and hashes, as there is no screen to fit."""
    bring_to(subject, "job_a", "done")
    shown = cli("show", "job_a")
    assert shown.code == 0
    for text in ("job_a", "done", "job.completed", FILE.path, FILE.sha256, "claimed by webhook"):
        assert text in shown.out


def test_an_unknown_job_is_exit_1(cli: Cli) -> None:
    """Well-formed, but not known."""
    for options in ((), ("--json",)):
        ran = cli("show", "job_nobody", *options)
        assert (ran.code, ran.out, ran.err) == (1, "", "error: job_nobody is unknown\n")


def test_no_text_of_a_job_steers_the_terminal(cli: Cli, subject: PostgresSubject) -> None:
    """Control characters are replaced, and brackets are no markup."""
    subject.deliver("job_a")
    lease = subject.take("job_a")
    subject.store.bury("job_a", token=lease.token, reason=Reason.HANDLER_FAILED, error=EVIL)
    for command in (("list",), ("show", "job_a"), ("list", "--json"), ("show", "job_a", "--json")):
        out = cli(*command).out
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
        assert "[bold red]x[/]" in out


def test_statistics_count_everything(cli: Cli, subject: PostgresSubject) -> None:
    """With the depth of the queue, and why polling is off."""
    bring_to(subject, "job_dead", "dead")
    subject.deliver("job_error", "job.failed")
    subject.store.count({"refused:bad_signature": 3}, details={"refused:bad_signature": "host, x-sig"})
    subject.store.beat("worker", "host.1")
    view = cli("stats", "--json").json()
    assert view["states"] == {"expected": 0, "claimed": 1, "running": 0, "done": 0, "dead": 1}
    assert (view["queue_depth"], view["unacknowledged"]) == (0, 1)
    assert view["refused"] == {"bad_signature": 3}
    assert view["refused_headers"] == {"bad_signature": ["host", "x-sig"]}
    assert view["signing_secrets"] == [{"position": 1, "last_used_at": None}]
    assert view["alive"] == {"scheduler": 0, "worker": 1}
    assert (view["last_seen"]["scheduler"], view["last_seen"]["worker"][-1]) == (None, "Z")
    assert view["polling"] == "SUME_API_KEY is not set"
    cli.set(sume_api_key="key")
    assert cli("stats", "--json").json()["polling"] == "on"
    table = cli("stats").out
    assert "refused bad_signature" in table
    for label, figure in (
        ("refused_headers bad_signature", "host, x-sig"),
        ("signing secret 1", "not used"),
        ("alive worker", "1"),
    ):
        assert [line.split(label)[1].strip() for line in table.splitlines() if label in line] == [figure]
    assert "dead" in table


def test_statistics_need_no_redis(cli: Cli) -> None:
    """Its depth is unknown then, which is no failure."""
    cli.set(redis_url="redis://127.0.0.1:1")
    ran = cli("stats", "--json")
    assert (ran.code, ran.json()["queue_depth"]) == (0, None)
    assert ran.err.startswith("queue_depth is unknown: Redis")
    ran = cli("stats")
    assert (ran.code, "unreachable" in ran.out) == (0, True)


def test_statistics_tell_of_hosts_that_fail(cli: Cli, subject: PostgresSubject) -> None:
    """Which one, since when, how many jobs wait for it, and when it is tried again."""
    open_circuit(subject)
    wait_for_host(subject, "job_demo")
    (circuit,) = cli("stats", "--json").json()["circuits"]
    assert list(circuit) == ["host", "failures", "open_since", "next_probe_at", "waiting"]
    assert (circuit["host"], circuit["failures"], circuit["waiting"]) == (HOST, OPENS_AFTER, 1)
    assert f"circuit {HOST}" in cli("stats").out
    assert circuit["next_probe_at"] == cli("show", "job_demo", "--json").json()["next_look_at"]
