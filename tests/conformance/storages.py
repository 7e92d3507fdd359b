"""What is promised about the storage a database knows."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.subject import Subject


class StoragesConformance:
    """Inherit it and give a `subject` fixture."""

    def test_a_database_knows_one_storage_until_a_person_says_otherwise(self, subject: Subject) -> None:
        """The first to name one wins, of any number at once."""
        assert subject.store.storage_id() is None
        together = threading.Barrier(8)

        def keep(number: int) -> str:
            together.wait(10)
            return subject.store.keep_storage_id(f"storage-{number}")

        with ThreadPoolExecutor(8) as pool:
            (known,) = set(pool.map(keep, range(8)))
        assert subject.store.storage_id() == known
        subject.store.replace_storage_id("another")
        assert subject.store.keep_storage_id("storage-9") == "another"
