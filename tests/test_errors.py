"""The text of any error of ours can be stored and shown, whatever a foreign error's text held."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from shared.claims.states import Reason
from shared.errors import AttemptError, PermanentError, RetryableError
from tests.claims.postgres_subject import PostgresSubject


@pytest.mark.parametrize("text", ["a\0b", "bad \udcff name", "\ud800\0"])
@pytest.mark.parametrize("error", [PermanentError, lambda text: RetryableError("handler_failed", text)])
def test_any_text_can_be_stored(database_url: str, text: str, error: Callable[[str], AttemptError]) -> None:
    """A NUL or a lone surrogate in a handler's exception must not keep its job from being released or buried."""
    subject = PostgresSubject(database_url)
    subject.deliver("job_a")
    token, problem = subject.take("job_a").token, str(error(text))
    assert subject.store.release("job_a", token=token, reason=Reason.HANDLER_FAILED, error=problem, wait=timedelta(0))
    record = subject.store.get_job("job_a")
    assert record is not None
    assert record.error == problem
    subject.store.close()
