"""What shows that something is wrong which no job tells of: processes that fall silent, deliveries that are refused."""

from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import text

from shared.claims.postgres.database import Database
from shared.claims.watch import HeldBack, IntakeFacts, Refusal, Role

# Say that a process lives. What another of its role left behind goes after an hour, so the last one of a role stays.
BEAT = text("""
    WITH gone AS (
        DELETE FROM sume_heartbeats WHERE role = :role AND name = ANY(ARRAY(
            SELECT name FROM sume_heartbeats
            WHERE role = :role AND name <> :name AND last_at < now() - interval '1 hour' FOR UPDATE SKIP LOCKED
        ))
    ) INSERT INTO sume_heartbeats (role, name) VALUES (:role, :name)
    ON CONFLICT (role, name) DO UPDATE SET last_at = now()
""")
SILENT_FOR = text("SELECT now() - max(last_at) AS silent FROM sume_heartbeats WHERE role = :role")

INTAKE = text("""
    SELECT name, count AS counted, detail, now() - last_at AS ago FROM sume_counters
    WHERE name IN ('accepted', 'redelivered') OR name LIKE 'refused:%'
""")

# Alert now and forget how many were held back, or hold this one back and count it.
MAY_ALERT = text("""
    WITH before AS (
        SELECT held_back FROM sume_alerts WHERE kind = :kind AND subject = :subject
    ), alert AS (
        INSERT INTO sume_alerts AS a (kind, subject) VALUES (:kind, :subject)
        ON CONFLICT (kind, subject) DO UPDATE SET
            held_back = CASE WHEN a.sent_at <= now() - :every THEN 0 ELSE a.held_back + 1 END,
            sent_at = CASE WHEN a.sent_at <= now() - :every THEN now() ELSE a.sent_at END
        RETURNING held_back
    ) SELECT alert.held_back = 0 AS now, coalesce((SELECT held_back FROM before), 0) AS held_back FROM alert
""")

# Take the counts of what was held back and has waited long enough, each for one caller.
TAKE_HELD_BACK = text("""
    UPDATE sume_alerts AS a SET held_back = 0, sent_at = now()
    FROM (
        SELECT kind, subject, held_back FROM sume_alerts
        WHERE kind = ANY(:kinds) AND subject = '' AND held_back > 0 AND sent_at <= now() - :every
        FOR UPDATE SKIP LOCKED
    ) AS b WHERE (a.kind, a.subject) = (b.kind, b.subject) RETURNING a.kind, b.held_back
""")


class Watching:
    """The WatchStore and the AlertStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, role: Role, name: str) -> None:
        """See WatchStore.beat."""
        self._database.changed(BEAT, role=role, name=name)

    def silent_for(self, role: Role) -> timedelta | None:
        """See WatchStore.silent_for."""
        row = self._database.row(SILENT_FOR, role=role)
        return row.silent if row is not None else None

    def intake_facts(self) -> IntakeFacts:
        """See WatchStore.intake_facts."""
        rows = {row.name: row for row in self._database.rows(INTAKE)}
        accepted, redelivered = rows.get("accepted"), rows.get("redelivered")
        return IntakeFacts(
            accepted=accepted.counted if accepted else 0,
            accepted_ago=accepted.ago if accepted else None,
            redelivered=redelivered.counted if redelivered else 0,
            refusals=tuple(
                Refusal(name.removeprefix("refused:"), row.counted, row.ago, row.detail)
                for name, row in sorted(rows.items())
                if name.startswith("refused:")
            ),
        )

    def may_alert(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """See AlertStore.may_alert."""
        row = self._database.row(MAY_ALERT, kind=kind, subject=subject, every=every)
        return row.held_back if row is not None and row.now else None

    def take_held_back(self, kinds: Collection[str], *, every: timedelta) -> list[HeldBack]:
        """See AlertStore.take_held_back."""
        rows = self._database.rows(TAKE_HELD_BACK, kinds=list(kinds), every=every)
        return [HeldBack(row.kind, row.held_back) for row in rows]
