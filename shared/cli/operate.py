"""The commands that change jobs: register, reopen, mark as seen, prune."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

import typer

from shared.cli.arguments import LONGEST_DAYS, check_job_ids, read_since
from shared.cli.terminal import complain, note, say
from shared.errors import UsageError

YEAR_SECONDS = 31_536_000
PRUNE_BATCH = 1_000
EVERYTHING = 2**31 - 1


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(epilog="Example: sume-jobs expect job_demo --due-in 60")(expect)
    app.command(epilog="Example: sume-jobs requeue --state dead --reason download_failed --since 2h")(requeue)
    app.command(epilog="Example: sume-jobs ack job_demo")(ack)
    app.command(epilog="Example: sume-jobs prune --older-than 90 --dry-run")(prune)


def expect(
    job_id: Annotated[str, typer.Argument(help="The job.", show_default=False)],
    status_url: Annotated[
        str | None, typer.Option(help="Where to ask; must be of SUME_API_BASE_URL.", show_default="Sume's usual one")
    ] = None,
    due_in: Annotated[
        float | None,
        typer.Option(
            min=0, max=YEAR_SECONDS, help="Seconds until it is first asked for.", show_default="EXPECT_DUE_SECONDS"
        ),
    ] = None,
) -> None:
    """Register a job that was submitted elsewhere, so that it is asked for when its webhook never comes.

    A job that is known already stays as it is.
    """
    from shared.cli.session import store_session  # noqa: PLC0415 - `--help` answers without loading it
    from shared.views import polling_state  # noqa: PLC0415 - the same

    check_job_ids([job_id])
    with store_session() as (settings, store):
        if status_url is not None:
            check_status_url(status_url, base_url=settings.sume_api_base_url)
        wait = settings.seconds("expect_due") if due_in is None else timedelta(seconds=due_in)
        if not store.expect(job_id, status_url=status_url, due_in=wait):
            say(f"{job_id} is known already; nothing was changed")
            return
        say(f"{job_id} is expected, and asked for in {wait.total_seconds():g} s unless its webhook comes")
    if (polling := polling_state(settings)) != "on":
        note(f"polling is off ({polling}): only its webhook will end it")


def check_status_url(status_url: str, *, base_url: str) -> None:
    """Refuse a URL that would never be asked, because the API key must not go there."""
    from shared.sume.origin import same_origin  # noqa: PLC0415 - `--help` answers without loading it
    from shared.sume.payload import read_status_url  # noqa: PLC0415 - the same

    if read_status_url(status_url) is None:
        raise UsageError("--status-url must be a URL of at most 2048 printable ASCII characters")
    if not same_origin(status_url, base_url):
        raise UsageError(
            f"--status-url is not of the origin of SUME_API_BASE_URL ({base_url}), the only one that gets the API key"
        )


def requeue(
    *,
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="JOB_ID", help="The jobs.", show_default=False)] = None,
    state: Annotated[Literal["dead"] | None, typer.Option(help="Reopen all dead jobs.", show_default=False)] = None,
    reason: Annotated[str | None, typer.Option(help="Of those, the ones with this reason.", show_default=False)] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Of those, the ones that died since: 30m, 2h, 1d or an RFC 3339 time.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Run done jobs again too.")] = False,
) -> int:
    """Reopen dead jobs, named or all of a kind; attempts restart at 0.

    Files that are stored and whole are kept, handlers run again. Exit status 1 when a named job is unknown or not
    dead.
    """
    from shared.cli.requeue import Wanted, requeue_all, requeue_named  # noqa: PLC0415 - `--help` answers without it
    from shared.clock import now  # noqa: PLC0415 - the same

    job_ids = job_ids or []
    if bool(job_ids) == (state is not None):
        raise UsageError("name jobs, or give --state dead")
    if state is None:
        if reason is not None or since is not None:
            raise UsageError("--reason and --since go with --state dead")
        check_job_ids(job_ids)
        return requeue_named(job_ids, force=force)
    return requeue_all(Wanted(reason, since=None if since is None else read_since(since, now=now())))


def ack(
    *,
    job_ids: Annotated[list[str] | None, typer.Argument(metavar="JOB_ID", help="The jobs.", show_default=False)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> int:
    """Mark ERROR jobs as seen: they no longer lead the list, and may be pruned.

    Exit status 1 when a named job is unknown.
    """
    job_ids = job_ids or []
    if bool(job_ids) == everything:
        raise UsageError("name jobs, or give --all")
    check_job_ids(job_ids)
    return acknowledge(None if everything else job_ids)


def acknowledge(job_ids: Sequence[str] | None) -> int:
    """Mark the jobs, None for all; return the exit status."""
    from shared.cli.session import store_session  # noqa: PLC0415 - `--help` answers without loading it

    with store_session() as (_settings, store):
        unknown = [job_id for job_id in job_ids or [] if store.get_job(job_id) is None]
        say(f"newly marked as seen: {store.acknowledge(job_ids)}")
    for job_id in unknown:
        complain(f"{job_id} is unknown")
    return 1 if unknown else 0


def prune(
    *,
    older_than: Annotated[
        float | None, typer.Option(min=0, max=LONGEST_DAYS, help="Days.", show_default="RETENTION_DAYS")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
) -> None:
    """Delete the details of done jobs past retention, and replayed quarantine.

    The job_id stays, so that a late delivery is still a duplicate. All files stay, and so do dead, open and
    unacknowledged jobs.
    """
    from shared.cli.session import store_session  # noqa: PLC0415 - `--help` answers without loading it

    with store_session() as (settings, store):
        if older_than is None and settings.retention_days == 0:
            say("RETENTION_DAYS is 0: everything is kept; --older-than prunes all the same")
            return
        age = timedelta(days=settings.retention_days if older_than is None else older_than)
        jobs = quarantined = 0
        while True:
            pruned = store.prune(older_than=age, limit=EVERYTHING if dry_run else PRUNE_BATCH, dry_run=dry_run)
            jobs, quarantined = jobs + pruned.jobs, quarantined + pruned.quarantine
            if dry_run or pruned.jobs < PRUNE_BATCH:
                break
    say(f"{'would prune' if dry_run else 'pruned'} jobs: {jobs}, quarantined deliveries: {quarantined}")
