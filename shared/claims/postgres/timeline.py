"""Changes of state that note themselves in the timeline, in the same statement."""

from sqlalchemy import TextClause, text


def noted(update: str, *, cause: str, detail: str = "NULL") -> TextClause:
    """Wrap an UPDATE that returns job_id, state and attempts; `detail` is an SQL expression over what it returns."""
    return text(noting(update, cause=cause, detail=detail))


def noting(update: str, *, cause: str, detail: str = "NULL") -> str:
    """Return the text of what `noted` does, for a statement in the driver's own words."""
    return f"""
    WITH moved AS ({update}), noted AS (
        INSERT INTO sume_timeline (job_id, state, cause, attempt, detail)
        SELECT job_id, state, '{cause}', attempts, {detail} FROM moved
    ) SELECT * FROM moved
    """  # noqa: S608 - built from constants of this package
