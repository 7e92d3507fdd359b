"""The rate of large files through the downloader, against curl, and the memory it takes.

Ours is all that becomes of one job's files in a worker: fetched over four connections (DOWNLOAD_CONCURRENCY), hashed,
compared with the SHA-256 that Sume stated, synced, linked to their final names, their manifest written. The clock runs
in a process that is a worker's in all it has loaded, from the first request to the manifest.

curl hashes and syncs nothing: it has done its work when the system has the bytes. There are two readings of the limit:

- `curl -o`: one curl that is given all files, with as many transfers at once as ours (`-Z --parallel-max 4`); one
  after the other takes it as long. It works on one core.
- `4 curls`: as many processes as ours has connections, two files each. They use every core, as ours does; on two
  cores what is missing to them is the SHA-256, 0.6 s of a core for each GiB where ours takes 1.5 s in all. Curls that
  are followed by `openssl dgst -sha256` take longer than ours.

Both write to the same file system; the folder is emptied, and the disk at rest, whenever a clock starts.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shared.config import Settings
from tests.bench.bench import Bench
from tests.bench.rounds import interleave
from tests.bench.row import Row, Target

MIB = 1024 * 1024
FILES, SIZE = 8, 256 * MIB
AT_ONCE = Settings.model_fields["download_concurrency"].default
ROOT = Path(__file__).parents[2]
OURS, CURL, CURLS = "sume-jobs", "curl -o", f"{AT_ONCE} curls"
KIB, MB = 1024, 1_000_000


def measure(bench: Bench) -> Iterator[Row]:
    """Compare them in the same rounds; RuntimeError when curl is missing or a file is not whole."""
    curl = shutil.which("curl")
    if curl is None:
        raise RuntimeError("the limit of downloads is curl, which is not installed: apt-get install curl")
    with file_host(bench.folder / "served") as (url, sha256):
        scene = Scene(bench.folder / "stored", url, sha256, curl)
        runs = {OURS: scene.ours, CURL: scene.one_curl, CURLS: scene.several_curls}
        for run in runs.values():  # memory that a virtual machine touches for the first time costs seconds a GiB
            run()
        scene.peaks.clear()
        found = interleave(runs, compare=[(OURS, CURL), (OURS, CURLS)], pairs=bench.pairs, say=bench.say)
    name = f"{FILES} files of {SIZE // MIB} MiB, SHA-256 and publish included"
    for limit, target in ((CURL, 0.9), (CURLS, 0.7)):  # four curls: what two cores that also hash can reach
        yield found[OURS, limit].row(f"{name} / {limit}", target=Target(at_least=target), unit="MB/s")
    yield Row(f"{name}: peak memory", Target(at_most=150), tuple(scene.peaks), 0, "MB")


@dataclass(slots=True)
class Scene:
    """A folder that is empty, and on disk, whenever the clock starts."""

    folder: Path
    url: str
    sha256: str
    curl: str
    """Where it is installed."""
    peaks: list[float] = field(default_factory=list)
    """MB that our process held, one for each run."""

    def ours(self) -> float:
        """Return MB/s, without the start of the process: a worker is there when a job comes."""
        with self._emptied():
            command = [sys.executable, "-m", "tests.bench.fetching", self.url, str(self.folder), self.sha256]
            command += [str(FILES), str(SIZE)]
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
            told = json.loads(done.stdout.splitlines()[-1])
            self.peaks.append(told["peak_kib"] * KIB / MB)
            return rate(told["seconds"])

    def one_curl(self) -> float:
        """Return MB/s."""
        return self._curl([["-Z", "--parallel-immediate", "--parallel-max", str(AT_ONCE), *self._files(0, FILES)]])

    def several_curls(self) -> float:
        """Return MB/s."""
        each = FILES // AT_ONCE
        return self._curl([self._files(first, each) for first in range(0, FILES, each)])

    def _files(self, first: int, count: int) -> list[str]:
        return ["-o", f"{self.folder}/#1.mp4", f"{self.url}/[{first}-{first + count - 1}].mp4"]

    def _curl(self, commands: Sequence[Sequence[str]]) -> float:
        with self._emptied():
            began = time.perf_counter()
            curls = [subprocess.Popen([self.curl, "-fsS", "--no-progress-meter", *command]) for command in commands]
            statuses = [curl.wait() for curl in curls]
            seconds = time.perf_counter() - began
            sizes = [file.stat().st_size for file in self.folder.iterdir()]
            if any(statuses) or sizes != [SIZE] * FILES:
                raise RuntimeError("curl did not fetch every file")
            return rate(seconds)

    @contextmanager
    def _emptied(self) -> Iterator[None]:
        self.folder.mkdir()
        os.sync()  # what the run before left to be written would slow this one down
        try:
            yield
        finally:
            shutil.rmtree(self.folder)


def rate(seconds: float) -> float:
    """Return MB/s of all files."""
    return FILES * SIZE / MB / seconds


@contextmanager
def file_host(file: Path) -> Iterator[tuple[str, str]]:
    """Lend a host of one file in a process of its own: its URL, and the SHA-256 of the file."""
    block = os.urandom(MIB)
    digest = hashlib.sha256()
    with file.open("wb") as writing:
        for _ in range(SIZE // MIB):
            writing.write(block)
            digest.update(block)
    command = [sys.executable, "-m", "tests.bench.file_host", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(host.stdout.readline())}", digest.hexdigest()
        finally:
            host.stdin.close()
            host.wait()
            file.unlink()
