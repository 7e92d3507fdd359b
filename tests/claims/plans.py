"""The plans that PostgreSQL makes for whatever a store asks, as auto_explain tells them."""

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import TextClause, event

import shared.claims.postgres
from shared.claims.postgres.store import PostgresStore

SMALL_TABLES = {
    "sume_alerts": "one row a kind of alert and subject; read by its key",
    "sume_counters": "one row a counter, about thirty",
    "sume_heartbeats": "one row a process of the last hour",
    "sume_hosts": "one row an artifact host that failed within a day",
    "sume_storage": "one row",
    "sume_jobs_version": "one row",
}
"""Tables that do not grow with the jobs: reading one whole is the cheapest way to read it."""
MOST_READ = 5_000
"""Rows of one table, for an index may be used and not help: several pages of the audit, a sixth of the jobs."""
GROWING = r"""
SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname LIKE 'sume\_%%' AND relname <> ALL(%s)
"""
WHOLE = "SELECT indexrelid::regclass::text FROM pg_index WHERE indpred IS NULL AND indrelid::regclass::text = ANY(%s)"
STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[bs]|\$\d+|(?<![:\w]):[a-z]\w*")

Plan = dict[str, Any]


@dataclass(slots=True)
class Recorder:
    """Remembers each statement a store runs, and what is wrong with its plans."""

    known: dict[str, str]
    """The name of each statement, or part of one, by its text."""
    parts: set[str]
    """Texts that may be parts of statements."""
    growing: set[str]
    """Tables that grow with the jobs."""
    whole: set[str]
    """Indexes of those that hold every row: to walk one is to read the table."""
    running: str = "outside"
    """What to call a statement that is not a constant."""
    seen: set[str] = field(default_factory=set)
    """Texts of all that was run."""
    faults: set[tuple[str, str]] = field(default_factory=set)
    """Names of statements, and what is wrong with a plan of theirs."""

    @property
    def never_run(self) -> set[str]:
        """Names of statements that were not run."""
        within_others = {text for text in self.parts if any(text in seen for seen in self.seen)}
        return {name for text, name in self.known.items() if text not in self.seen | within_others}

    def note(self, notice: psycopg.errors.Diagnostic) -> None:
        """Take a notice of auto_explain."""
        _, found, document = (notice.message_primary or "").partition("plan:\n")
        if not found:
            return
        explained = json.loads(document)
        text = normal(explained["Query Text"])
        self.seen.add(text)
        for fault in self._judge(explained["Plan"], limited=False):
            self.faults.add((self.known.get(text, self.running), fault))

    def _judge(self, plan: Plan, *, limited: bool) -> Iterator[str]:
        kind, index = plan["Node Type"], plan.get("Index Name")
        if kind == "Seq Scan" and plan["Relation Name"] in self.growing:
            yield f"reads all of {plan['Relation Name']}, filter {plan.get('Filter')}"
        # In order and up to a limit it reads what it returns, unless most of that is filtered out.
        if index in self.whole and "Index Cond" not in plan and not (limited and "Filter" not in plan):
            yield f"walks all of {index}, filter {plan.get('Filter')}"
        read = plan["Actual Loops"] * (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0))
        if plan.get("Relation Name") in self.growing and read > MOST_READ:
            yield f"reads {read:.0f} rows of {plan['Relation Name']} through {index}, filter {plan.get('Filter')}"
        for inner in plan.get("Plans", ()):
            yield from self._judge(inner, limited=limited or kind == "Limit")


def record_plans(store: PostgresStore, database_url: str, *, mode: str) -> Recorder:
    """Have every plan of this store noted from now on, under this `plan_cache_mode`."""
    name = psycopg.conninfo.conninfo_to_dict(database_url)["dbname"]
    settings = {
        "session_preload_libraries": "auto_explain",
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_format": "json",
        "auto_explain.log_level": "notice",
        "auto_explain.log_nested_statements": "on",
        "auto_explain.log_analyze": "on",
        "auto_explain.log_timing": "off",
        "plan_cache_mode": mode,
    }
    with psycopg.connect(database_url, autocommit=True) as connection:
        growing = {table for (table,) in connection.execute(GROWING, [list(SMALL_TABLES)])}
        whole = {index for (index,) in connection.execute(WHOLE, [list(growing)])}
        for setting, value in settings.items():
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(str(name)), sql.Identifier(*setting.split(".")), sql.Literal(value)
                )
            )
    known, parts = statements()
    recorder = Recorder(known, parts, growing, whole)

    def listen(connection: psycopg.Connection, _record: object) -> None:
        connection.add_notice_handler(recorder.note)

    event.listen(store._database._engine, "connect", listen, insert=True)  # before the session's own statement
    return recorder


def statements() -> tuple[dict[str, str], set[str]]:
    """Return the names of all statements in the modules of the store by their text, and which may be parts of others.

    What is no TextClause is run on the driver, or put together with other texts.
    """
    known: dict[str, str] = {}
    parts: set[str] = set()
    package = shared.claims.postgres
    for module in pkgutil.iter_modules(package.__path__):
        for name, value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).items():
            text = value.text if isinstance(value, TextClause) else value
            if name.isupper() and isinstance(text, str) and STATEMENT.match(text):
                known[normal(text)] = f"{module.name}.{name}"
                if text is value:
                    parts.add(normal(text))
    return known, parts


def normal(text: str) -> str:
    """Return a statement without what differs between how it is written and how it arrives."""
    return " ".join(PLACEHOLDER.sub("?", text).split())
