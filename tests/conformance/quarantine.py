"""What is promised about signed bodies that were not understood: kept once, until they are understood."""

from datetime import timedelta

from tests.conformance.subject import Subject

ODD = b"\x00\xff\xfe not json \r\n"
DAY = timedelta(days=1)


class QuarantineConformance:
    """Inherited by the tests of each store, which give `subject`."""

    def test_a_body_is_kept_byte_for_byte_and_counted(self, subject: Subject) -> None:
        """However often it comes it is one entry, with its length, its count and its times."""
        for _ in range(3):
            subject.store.quarantine(ODD, reason="invalid_json")
        [entry] = subject.store.list_quarantine(replayed=False, limit=9)
        assert (entry.reason, entry.count, entry.bytes, entry.replayed_at) == ("invalid_json", 3, len(ODD), None)
        assert entry.first_seen <= entry.last_seen
        kept = subject.store.get_quarantined(entry.id)
        assert kept is not None
        assert (kept.entry, kept.body) == (entry, ODD)
        assert subject.store.get_quarantined(entry.id + 1) is None

    def test_the_open_come_first_and_the_replayed_when_asked_for(self, subject: Subject) -> None:
        """Among each the latest first; a limit is kept."""
        for body in (b"1", b"2", b"3", b"4"):
            subject.store.quarantine(body, reason="invalid_json")
        first, second, third, fourth = subject.store.open_quarantine_ids()
        assert subject.store.mark_replayed(fourth)
        assert subject.store.mark_replayed(second)

        def listed(*, replayed: bool, limit: int = 9) -> list[int]:
            return [entry.id for entry in subject.store.list_quarantine(replayed=replayed, limit=limit)]

        assert listed(replayed=False) == [third, first]
        assert listed(replayed=True) == [third, first, fourth, second]
        assert listed(replayed=True, limit=1) == [third]
        assert subject.store.open_quarantine_ids() == [first, third]
        assert subject.store.stats().quarantined == 2

    def test_a_body_is_replayed_once(self, subject: Subject) -> None:
        """The first time stays, whoever notes it again."""
        subject.store.quarantine(ODD, reason="invalid_json")
        [number] = subject.store.open_quarantine_ids()
        assert subject.store.mark_replayed(number)
        before = subject.store.get_quarantined(number)
        assert not subject.store.mark_replayed(number)
        assert subject.store.get_quarantined(number) == before
        assert not subject.store.mark_replayed(number + 1)

    def test_what_people_were_told_of_is_not_told_again(self, subject: Subject) -> None:
        """Each body once, however often it comes; a replayed one not at all."""
        for body in (b"1", b"2", b"3"):
            subject.store.quarantine(body, reason="invalid_json")
        first, second, third = (entry.id for entry in subject.store.untold_quarantine(limit=9))
        assert [entry.id for entry in subject.store.untold_quarantine(limit=1)] == [first]
        subject.store.mark_replayed(second)
        subject.store.mark_quarantine_told([first])
        subject.store.quarantine(b"1", reason="invalid_json")
        assert [entry.id for entry in subject.store.untold_quarantine(limit=9)] == [third]

    def test_all_the_replayed_go_at_once(self, subject: Subject) -> None:
        """However few rows one statement may hold."""
        for body in (b"1", b"2", b"3", b"4"):
            subject.store.quarantine(body, reason="invalid_json")
        for number in subject.store.open_quarantine_ids():
            subject.store.mark_replayed(number)
        subject.let_pass(2 * DAY)
        assert subject.store.prune(older_than=DAY, limit=2, dry_run=False).quarantine == 4
        assert subject.store.list_quarantine(replayed=True, limit=9) == []

    def test_pruning_takes_the_replayed_alone(self, subject: Subject) -> None:
        """What is not understood stays for ever, however old it is."""
        for body in (b"1", b"2"):
            subject.store.quarantine(body, reason="invalid_json")
        first, second = subject.store.open_quarantine_ids()
        subject.store.mark_replayed(first)
        subject.let_pass(400 * DAY)
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=True).quarantine == 1
        assert subject.store.prune(older_than=DAY, limit=9, dry_run=False).quarantine == 1
        assert [entry.id for entry in subject.store.list_quarantine(replayed=True, limit=9)] == [second]
