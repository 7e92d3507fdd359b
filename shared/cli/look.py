"""The commands that only look: at jobs, counts and files."""

from typing import Annotated, Literal

import typer

from shared.cli.arguments import Json, check_job_ids
from shared.cli.terminal import complain, console, note, print_json, progress_bar, say

EVENT_STATES = ("claimed", "running", "done", "dead")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("list", epilog="Example: sume-jobs list --state dead --limit 200")(list_jobs)
    app.command(epilog="Example: sume-jobs show job_demo --json")(show)
    app.command(epilog="Example: sume-jobs stats --json")(stats)
    app.command(epilog="Example: sume-jobs audit --json")(audit)


def list_jobs(
    *,
    state: Annotated[
        Literal["expected", "claimed", "running", "done", "dead"] | None,
        typer.Option(help="Only jobs in this state.", show_default=False),
    ] = None,
    status: Annotated[
        Literal["OK", "ERROR"] | None, typer.Option(help="Only jobs that ended so.", show_default=False)
    ] = None,
    redelivered: Annotated[bool, typer.Option("--redelivered", help="Only jobs delivered more than once.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where a list ended: its next_cursor.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """List jobs, the ones that need a person first.

    First ERROR jobs that nobody was told of (see ack), then dead ones (see requeue), then the latest changes.
    """
    from shared.claims.records import JobFilter  # noqa: PLC0415 - `--help` answers without loading it
    from shared.cli.session import store_session  # noqa: PLC0415 - the same
    from shared.cli.tables import job_table  # noqa: PLC0415 - the same
    from shared.clock import now  # noqa: PLC0415 - the same
    from shared.views import page_view  # noqa: PLC0415 - the same

    wanted = JobFilter(state=state, status=status, redelivered=redelivered, limit=limit, cursor=cursor)
    with store_session() as (_settings, store):
        page = store.list_jobs(wanted)
    if json:
        print_json(page_view(page))
    elif not page.jobs:
        say("no jobs")
    else:
        where = console()
        where.print(job_table(page.jobs, now=now(), on_screen=where.is_terminal))
        if page.next_cursor is not None:
            note(f"there are more: --limit {limit * 2}, or --cursor {page.next_cursor}")


def show(job_id: Annotated[str, typer.Argument(help="The job.", show_default=False)], *, json: Json = False) -> int:
    """Show one job with its artifacts and timeline.

    Exit status 1 when it is unknown.
    """
    from shared.cli.session import store_session  # noqa: PLC0415 - `--help` answers without loading it
    from shared.cli.tables import print_job  # noqa: PLC0415 - the same
    from shared.clock import now  # noqa: PLC0415 - the same
    from shared.views import job_view  # noqa: PLC0415 - the same

    check_job_ids([job_id])
    with store_session() as (_settings, store):
        job = store.get_job(job_id)
    if job is None:
        complain(f"{job_id} is unknown")
        return 1
    if json:
        print_json(job_view(job))
    else:
        print_job(console(), job, now=now())
    return 0


def stats(*, json: Json = False) -> None:
    """Count jobs by state, and say what waits and what was refused."""
    from shared.cli.session import full_session  # noqa: PLC0415 - `--help` answers without loading it
    from shared.cli.tables import stats_table  # noqa: PLC0415 - the same
    from shared.errors import QueueUnavailableError  # noqa: PLC0415 - the same
    from shared.views import stats_view  # noqa: PLC0415 - the same

    with full_session() as (settings, store, queue):
        counted = store.stats()
        try:
            depth: int | None = queue.depth()
        except QueueUnavailableError as error:
            depth = None  # the statistics are about Postgres first
            note(f"queue_depth is unknown: {error}")
    view = stats_view(counted, queue_depth=depth, settings=settings)
    if json:
        print_json(view)
    else:
        console().print(stats_table(view))


def audit(*, json: Json = False) -> int:
    """Prove that every claimed job is done with all its files as recorded, or is visibly open.

    Reads every file of every done job; may run while workers do. Jobs whose details are pruned have no record of
    their files left to compare. Exit status 1 when anything is not accounted for.
    """
    from dataclasses import asdict  # noqa: PLC0415 - `--help` answers without loading it

    from shared.audit import Auditor  # noqa: PLC0415 - the same
    from shared.cli.session import store_session  # noqa: PLC0415 - the same
    from shared.cli.tables import problem_table  # noqa: PLC0415 - the same
    from shared.storage import open_storage  # noqa: PLC0415 - the same

    with store_session() as (settings, store):
        states = store.stats().states
        with progress_bar("audit", total=sum(states.get(state, 0) for state in EVENT_STATES)) as step:
            found = Auditor(store, open_storage(settings)).audit(step=step)
    if json:
        problems = [asdict(problem) for problem in found.problems]
        print_json({"ok": found.ok, "checked": found.checked, "problems": problems})
    elif found.ok:
        say(f"ok: {found.checked} jobs checked, each done with its files as recorded or visibly open")
    else:
        console().print(problem_table(found.problems))
        complain(f"{len(found.problems)} problems in {found.checked} jobs checked")
    return 0 if found.ok else 1
