"""A process of its own that downloads and publishes several files at once and prints its peak memory in KiB."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from shared.event import Artifact
from shared.storage.local import LocalStorage
from shared.storage.storage import never_stop
from worker.addresses import HostRules
from worker.download import Downloader


def peak_kib() -> int:
    """Return the most memory this program has held; getrusage would count its parent's too."""
    match = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert match is not None
    return int(match[1])


def main(url: str, root: str, at_once: str) -> None:
    """Download one URL several times at once."""
    storage = LocalStorage(Path(root))
    rules = HostRules.of(("127.0.0.1",), allow_insecure=True)
    downloader = Downloader(rules, stall=timedelta(seconds=20), max_bytes=2**40)

    def bring(index: int) -> int:
        partial = storage.start("job_demo", token=uuid4(), name="00")
        size = downloader.download(Artifact(index, url), partial, check=never_stop).bytes
        partial.discard()
        return size

    with ThreadPoolExecutor(int(at_once)) as pool:
        sizes = list(pool.map(bring, range(int(at_once))))
    print(peak_kib(), sum(sizes))  # noqa: T201 - read by the test


if __name__ == "__main__":
    main(*sys.argv[1:])
