"""What is promised when two deliveries of one job contradict each other: the first wins, and it shows."""

from itertools import product

from shared.claims.records import Claim, ClaimResult
from shared.event import EVENT_NAMES, Event, Status
from tests.conformance.subject import Subject, event

STATUSES: tuple[Status, ...] = ("OK", "ERROR")


def variants(job_id: str) -> list[Event]:
    """Return every event with every status it may state, as the parser gives them."""
    found = []
    for name, status in product(EVENT_NAMES, STATUSES):
        natural = "OK" if name == "job.completed" else "ERROR"
        conflict = None if status == natural else f"status {status}"
        found.append(event(job_id, name, status=status, payload=f'{{"{name}":"{status}"}}', conflict=conflict))
    return found


def pairs() -> list[tuple[Event, Event]]:
    """Return every pair of them in both orders, each pair about a job of its own."""
    count = len(EVENT_NAMES) * len(STATUSES)
    return [
        (variants(f"job_{first}{second}")[first], variants(f"job_{first}{second}")[second])
        for first, second in product(range(count), range(count))
    ]


def expected_mark(first: Event, second: Event) -> str | None:
    """Return what the row says it contradicts: the first thing that did."""
    if first.conflict is not None:
        return first.conflict
    if second.name != first.name:
        return second.name
    return None if second.status == first.status else f"status {second.status}"


class ConflictConformance:
    """Inherited by the tests of each store, which give `subject`."""

    def judge(self, subject: Subject, first: Event, second: Event, results: list[ClaimResult]) -> None:
        """Hold the results and the row to the first event, byte for byte, and to one visible conflict."""
        one, two = results
        assert (one.new, two.new, two.deliveries) == (True, False, 2)
        assert {(result.event, result.status) for result in results} == {(first.name, first.status)}
        differs = (first.name, first.status) != (second.name, second.status)
        assert one.conflict == (first.conflict is not None)
        assert two.conflict == (differs or second.conflict is not None)
        job = subject.store.get_job(first.job_id)
        assert job is not None
        assert (job.event, job.status, job.conflict_with) == (first.name, first.status, expected_mark(first, second))
        assert subject.take(first.job_id).payload == first.payload

    def test_of_every_pair_the_first_wins(self, subject: Subject) -> None:
        """Each event with each status before each, one after the other; as many conflicts are counted as there are."""
        conflicts = 0
        for first, second in pairs():
            results = [result for told in (first, second) for result in subject.store.claim_many([Claim(told)])]
            self.judge(subject, first, second, results)
            conflicts += expected_mark(first, second) is not None
        assert subject.store.stats().conflicts == conflicts

    def test_of_every_pair_in_one_batch_the_first_wins(self, subject: Subject) -> None:
        """The same inside one group commit, all pairs in one statement."""
        results = subject.store.claim_many([Claim(told) for pair in pairs() for told in pair])
        for number, (first, second) in enumerate(pairs()):
            self.judge(subject, first, second, results[2 * number : 2 * number + 2])
