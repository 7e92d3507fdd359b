"""How jobs, counts and problems look to people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.audit import Problem
from shared.claims.records import JobRecord, TimelineEntry
from shared.claims.states import State
from shared.cli.terminal import literal
from shared.event import StoredArtifact
from shared.views import shown_url

STATE_STYLES: Mapping[State, str] = {
    "expected": "cyan",
    "claimed": "yellow",
    "running": "blue",
    "done": "green",
    "dead": "bold red",
}
ATTENTION = "bold red"
UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))
MORE_THAN_ONCE = 2
LEAST_WHY = 10


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table that wraps its columns where the terminal is too narrow."""
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def span(time: timedelta) -> str:
    """Return a time in its largest unit."""
    for unit, size in UNITS:
        if time >= size:
            return f"{time // size} {unit}"
    return f"{max(0, int(time.total_seconds()))} s"


def ago(moment: datetime | None, *, now: datetime) -> str:
    """Return a moment as seen from now."""
    if moment is None:
        return ""
    return f"in {span(moment - now)}" if moment > now else f"{span(now - moment)} ago"


def due(moment: datetime | None, *, now: datetime) -> str:
    """Return when something is to happen."""
    return "now" if moment is not None and moment <= now else ago(moment, now=now)


def state_text(state: State) -> Text:
    """Return a state in its colour."""
    return literal(state, STATE_STYLES[state])


def needs_telling(job: JobRecord) -> bool:
    """Whether Sume reported an error that nobody was told of."""
    return job.status == "ERROR" and job.acknowledged_at is None


def why(job: JobRecord) -> Text:
    """Return what a person should know about a job, the most urgent first."""
    parts = []
    if needs_telling(job):
        parts.append(literal("not acknowledged", ATTENTION))
    if job.deliveries >= MORE_THAN_ONCE:
        parts.append(literal("redelivered", "yellow"))
    if job.conflict:
        parts.append(literal(f"conflict: {job.conflict_with}", "magenta"))
    told = ": ".join(text for text in (job.reason, job.error) if text)
    if told:
        parts.append(literal(told))
    return Text("; ").join(parts)


def job_table(jobs: Sequence[JobRecord], *, now: datetime, on_screen: bool) -> Table:
    """Return a list of jobs; on a screen too narrow the job_id is folded and only `why` is cut."""
    made = table("job_id", "state", "event", "deliv.", "att.", "next", "updated", "why")
    for column in made.columns[1:]:
        column.no_wrap = True
    made.columns[-1].overflow, made.columns[-1].ratio, made.columns[-1].min_width = "ellipsis", 1, LEAST_WHY
    made.expand = on_screen
    for job in jobs:
        made.add_row(
            literal(job.job_id),
            state_text(job.state),
            literal(job.event and job.event.removeprefix("job."), "red" if job.status == "ERROR" else ""),
            literal(job.deliveries),
            literal(job.attempts),
            literal(due(job.next_look_at, now=now)),
            literal(ago(job.updated_at, now=now)),
            why(job),
        )
    return made


def print_job(where: Console, job: JobRecord, *, now: datetime) -> None:
    """Print one job with its artifacts and timeline."""
    where.print(job_facts(job, now=now))
    if job.artifacts:
        where.print(artifact_table(job.artifacts))
    if job.timeline:
        where.print(timeline_table(job.timeline))


def job_facts(job: JobRecord, *, now: datetime) -> Table:
    """Return what is known about a job, what is empty left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("job_id", literal(job.job_id, "bold"))
    grid.add_row("state", state_text(job.state))
    if needs_telling(job):
        grid.add_row("attention", literal(f"nobody was told; sume-jobs ack {job.job_id}", ATTENTION))
    facts: dict[str, object] = {
        "event": job.event,
        "status": job.status,
        "source": job.source,
        "deliveries": job.deliveries,
        "attempts": job.attempts,
        "conflict": job.conflict_with,
        "reason": job.reason,
        "error": job.error,
        "status_url": shown_url(job.status_url),
    }
    for name, value in facts.items():
        if value is not None:
            grid.add_row(name, literal(value))
    for name in ("first_seen", "last_seen", "updated_at", "next_look_at", "acknowledged_at", "pruned_at"):
        moment: datetime | None = getattr(job, name)
        if moment is not None:
            grid.add_row(name, literal(f"{stamp(moment)}  ({ago(moment, now=now)})"))
    return grid


def stamp(moment: datetime) -> str:
    """Return a moment to the second, in UTC as the store gives it."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")


def artifact_table(artifacts: Sequence[StoredArtifact]) -> Table:
    """Return the stored files of a job."""
    made = table("path", "bytes", "type", "sha256", title="artifacts")
    for artifact in artifacts:
        kind = artifact.content_type or artifact.type
        made.add_row(literal(artifact.path), literal(artifact.bytes), literal(kind), literal(artifact.sha256))
    return made


def timeline_table(timeline: Sequence[TimelineEntry]) -> Table:
    """Return the changes of a job's state."""
    made = table("at", "state", "attempt", "cause", "detail", title="timeline")
    for entry in timeline:
        made.add_row(
            literal(stamp(entry.at)),
            state_text(entry.state),
            literal(entry.attempt or None),
            literal(entry.cause),
            literal(entry.detail),
        )
    return made


def stats_table(view: Mapping[str, Any]) -> Table:
    """Return the statistics, one line a figure."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in view.items():
        if name == "circuits":
            for circuit in value:
                grid.add_row(literal(f"circuit {circuit['host']}"), literal(circuit_line(circuit), ATTENTION))
            continue
        if name == "signing_secrets":
            for secret in value:
                used = secret["last_used_at"]
                grid.add_row(
                    f"signing secret {secret['position']}", literal(f"last used {used}" if used else "not used")
                )
            continue
        if not isinstance(value, Mapping):
            shown = "unreachable" if name == "queue_depth" and value is None else value
            grid.add_row(name, literal(f"{value:.1f}" if isinstance(value, float) else shown))
            continue
        for key, figure in value.items():
            label = key if name == "states" else f"{name} {key}"
            shown = ", ".join(figure) if isinstance(figure, list) else figure
            grid.add_row(literal(label), literal(shown, STATE_STYLES.get(key, "")))
    return grid


def circuit_line(circuit: Mapping[str, Any]) -> str:
    """Return what is known of an artifact host that fails for everybody."""
    return (
        f"open since {circuit['open_since']}: {circuit['failures']} failures, {circuit['waiting']} jobs wait, "
        f"next probe {circuit['next_probe_at']}"
    )


def problem_table(problems: Sequence[Problem]) -> Table:
    """Return what is not accounted for."""
    made = table("job_id", "path", "problem")
    for problem in problems:
        made.add_row(literal(problem.job_id), literal(problem.path), literal(problem.problem, "red"))
    return made
