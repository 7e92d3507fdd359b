"""Publishing broken: what is replaced, what is seen half, and what is taken unverified (I8)."""

from functools import partial

from tests.mutants.mutant import Mutant

LOCAL = "shared/storage/local.py"
PUBLISHER = "worker/publish.py"
STORAGE_TESTS = "tests/storage/test_local.py::"
PUBLISH_TESTS = "tests/worker/test_publish.py::"
SINGLE = "tests/worker/test_single_file.py::test_a_single_file_is_recorded_when_its_name_is_durable"
REFUSED = "tests/worker/test_download_verify.py::test_what_was_not_promised_is_refused"

publish = partial(Mutant, "publish")

MUTANTS = (
    publish(
        "a published file is replaced",
        LOCAL,
        "            try:\n                link(local.path, final)\n",
        "            try:\n                local.path.replace(final)\n",
        (f"{STORAGE_TESTS}test_a_published_file_is_never_replaced",),
    ),
    publish(
        "another worker's file is taken for one's own",
        LOCAL,
        "published = final.samefile(local.path)",
        "published = True",
        (f"{STORAGE_TESTS}test_a_published_file_is_never_replaced",),
    ),
    publish(
        "a link whose answer was lost is taken for another worker's",
        LOCAL,
        "published = final.samefile(local.path)",
        "published = False",
        (f"{STORAGE_TESTS}test_a_link_whose_answer_was_lost_counts",),
    ),
    publish(
        "a file has its name before it is on disk",
        LOCAL,
        "            local.make_durable()\n            self._make_folder_of(final)\n            try:\n",
        "            self._make_folder_of(final)\n            try:\n",
        (f"{STORAGE_TESTS}test_a_file_is_on_disk_before_it_has_its_name",),
    ),
    publish(
        "the bytes are not synced",
        "shared/storage/local_partial.py",
        "            os.fsync(self._file.fileno())\n",
        "",
        (f"{STORAGE_TESTS}test_a_file_is_on_disk_before_it_has_its_name",),
    ),
    publish(
        "the name is not synced",
        LOCAL,
        "            if not before_manifest:\n                self._make_name_durable(final)\n",
        "",
        (f"{STORAGE_TESTS}test_a_file_is_on_disk_before_it_has_its_name",),
    ),
    publish(
        "a single file is recorded before its name is synced",
        "worker/artifacts.py",
        "record=unrecorded.append if alone else keep,",
        "record=keep,",
        (SINGLE,),
    ),
    publish(
        "a single file's name is not synced where its manifest stands already",
        "worker/artifacts.py",
        "settle=alone",
        "settle=False",
        (SINGLE,),
    ),
    publish(
        "work in progress is visible",
        LOCAL,
        "        self._partials = root / PARTIAL\n",
        "        self._partials = root\n",
        (f"{STORAGE_TESTS}test_a_partial_is_not_visible",),
    ),
    publish(
        "a damaged file is reused for its size",
        PUBLISHER,
        "(found.bytes, found.sha256) == (recorded.bytes, recorded.sha256)",
        "found.bytes == recorded.bytes",
        (f"{PUBLISH_TESTS}test_a_damaged_file_is_set_aside_and_fetched_again",),
    ),
    publish(
        "a file without a record is adopted unverified",
        PUBLISHER,
        "if recorded is None and keeps_promise(artifact, found):",
        "if recorded is None:",
        (f"{PUBLISH_TESTS}test_a_damaged_file_is_set_aside_and_fetched_again",),
    ),
    publish(
        "a file of another SHA-256 than stated is published",
        "worker/promise.py",
        "if self.sha256 is not None and sha256 != self.sha256:",
        "if False:",
        (REFUSED,),
    ),
    publish(
        "a file of another size than stated is published",
        "worker/promise.py",
        "if self.size is not None and size != self.size:",
        "if False:",
        (REFUSED,),
    ),
    publish(
        "a worker that slept publishes over a file it never looked at",
        PUBLISHER,
        "            if self.storage.publish(partial, path, before_manifest=before_manifest):\n",
        "            self.storage.replace(partial, path)\n            if True:\n",
        (f"{PUBLISH_TESTS}test_a_worker_that_slept_past_its_lease_replaces_nothing",),
    ),
)
