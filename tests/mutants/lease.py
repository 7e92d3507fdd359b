"""The lease broken: who holds it, and what a worker without it can still do (I5, I6)."""

from functools import partial

from tests.mutants.mutant import LEASING, SWEEPING, Mutant

SQL = "shared/claims/postgres/leasing.py"
KEEPER = "worker/lease.py"
TOKEN, DRIVER_TOKEN = " AND lease_token = :token", " AND lease_token = %(token)b"
ONLY_THE_TOKEN = (f"{LEASING}test_only_the_current_token_finishes",)

lease = partial(Mutant, "lease")


def without_token(breaks: str, before: str, after: str = "", *, token: str = TOKEN) -> Mutant:
    """Return the mutant in which one change is made without the token, found by the text around it."""
    return lease(breaks, SQL, before + token + after, before + after, ONLY_THE_TOKEN)


HELD = "WHERE job_id = :job_id AND state = 'running'"
DRIVER_HELD = "WHERE job_id = %(job_id)b AND state = 'running'"

MUTANTS = (
    without_token("anybody renews", f"wake_at = now() + :lease {HELD}"),
    without_token(
        "anybody records an artifact",
        f"    {DRIVER_HELD}",
        "\n    ON CONFLICT (job_id, index)",
        token=DRIVER_TOKEN,
    ),
    without_token(
        "anybody finishes",
        f"        {DRIVER_HELD}",
        "\n        RETURNING job_id, state, attempts\n    ), listed",
        token=DRIVER_TOKEN,
    ),
    without_token("anybody releases", f"    {HELD}", "\n    RETURNING job_id, state, attempts, reason, error"),
    without_token("anybody buries", f'BURY_RUNNING = "{HELD}'),
    lease(
        "a job is taken in any state",
        SQL,
        "WHERE job_id = %(job_id)b AND state = 'claimed' AND (not_before",
        "WHERE job_id = %(job_id)b AND (not_before",
        (
            f"{LEASING}test_a_claimed_job_is_taken_once",
            f"{LEASING}test_there_is_no_lease_on_a_job_that_is_not_claimed",
        ),
    ),
    lease(
        "a released job starts early through a duplicate message",
        SQL,
        " AND (not_before IS NULL OR not_before <= now())",
        "",
        (f"{LEASING}test_a_released_job_does_not_start_early",),
    ),
    lease(
        "a renewal changes nothing",
        SQL,
        f"SET wake_at = now() + :lease {HELD}",
        f"SET wake_at = wake_at {HELD}",
        (f"{LEASING}test_a_renewed_lease_is_not_lost",),
    ),
    lease(
        "a lease is lost before it ran out",
        "shared/claims/postgres/sweeping.py",
        "state = 'running' AND wake_at <= now()",
        "state = 'running'",
        (
            f"{LEASING}test_a_renewed_lease_is_not_lost",
            f"{SWEEPING}test_a_lease_that_ran_out_is_lost_once_and_due_at_once",
        ),
    ),
    lease(
        "a worker does not hear that its lease was taken back",
        KEEPER,
        "            self._refused = True\n",
        "",
        ("tests/worker/test_lease.py::test_a_refused_renewal_means_lost_at_once_and_for_good",),
    ),
    lease(
        "a lease that cannot be renewed is thought good",
        KEEPER,
        "        if time.monotonic() >= self._good_until:\n",
        "        if False:\n",
        ("tests/worker/test_lease.py::test_a_lease_that_cannot_be_renewed_is_lost_when_its_length_is_over",),
    ),
    lease(
        "a refused outcome is taken for written",
        KEEPER,
        "                if not change():\n",
        "                if not change() and False:\n",
        ("tests/worker/test_lease.py::test_an_outcome_is_written_as_soon_as_the_database_is_back",),
    ),
)
