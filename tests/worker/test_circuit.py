"""The circuit of an artifact host: what an attempt asks, tells and waits for."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.event import Artifact
from shared.storage.local import LocalStorage
from shared.storage.storage import never_stop
from tests.worker.downloads import PNG, downloader
from tests.worker.hosts import PlayedHosts, PlayedPeople, circuits_of
from tests.worker.scripted_host import Answerer, ScriptedHost, exactly, redirect, whole
from tests.worker.test_publish import LEASE
from worker.circuit import CircuitOpenError
from worker.failures import DownloadError, IntegrityError
from worker.publish import Publisher

PROBE_WAIT = timedelta(minutes=1)


def publish(
    root: Path, host: ScriptedHost, hosts: PlayedHosts, *, failing: Mapping[str, bool] | None = None, **stated: int
) -> PlayedPeople:
    """Make one attempt at one file; return who was told."""
    lease, people = replace(LEASE, failing_hosts=failing or {}), PlayedPeople()
    publisher = Publisher(LocalStorage(root), downloader())
    artifact = Artifact(0, f"{host.url}/picture.png", type="image", **stated)  # type: ignore[arg-type]  # sizes
    publisher.publish(artifact, lease=lease, check=never_stop, circuits=circuits_of(lease, hosts, people))
    return people


def test_while_all_is_well_the_store_is_not_asked(tmp_path: Path) -> None:
    """A success costs no round trip."""
    hosts = PlayedHosts()
    with ScriptedHost([whole(PNG)]) as host:
        publish(tmp_path, host, hosts, failing={"elsewhere.sume.com": True})
    assert hosts.calls == []


DOWN: list[Answerer] = [
    exactly(b""),
    exactly(b"SSH-2.0-OpenSSH\r\n\r\n"),
    whole(b"", status=500),
    whole(b"", status=503),
    whole(b"", status=429),
    whole(b""),
    whole(b"<html>down for maintenance</html>", content_type="text/html"),
    exactly(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
]


@pytest.mark.parametrize("answer", DOWN, ids=["hangs up", "no HTTP", "500", "503", "429", "empty", "page", "cut"])
def test_what_a_host_does_to_everybody_is_counted(tmp_path: Path, answer: Answerer) -> None:
    """Cuts, 5xx, 429, pages, nothing at all; and whoever opened the circuit tells people."""
    hosts = PlayedHosts(opens=True)
    with ScriptedHost([answer]) as host, pytest.raises(DownloadError):
        publish(tmp_path, host, hosts)
    assert hosts.calls == [("failed", f"127.0.0.1:{host.port}")]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 204, 206, 300])
def test_what_may_be_one_file_s_fault_is_not_counted(tmp_path: Path, status: int) -> None:
    """An expired, gone or odd URL says nothing about its host."""
    hosts = PlayedHosts()
    with ScriptedHost([whole(b"", status=status)]) as host, pytest.raises(DownloadError):
        publish(tmp_path, host, hosts)
    assert hosts.calls == []


def test_wrong_bytes_are_not_counted(tmp_path: Path) -> None:
    hosts = PlayedHosts()
    with ScriptedHost([whole(PNG)]) as host, pytest.raises(IntegrityError):
        publish(tmp_path, host, hosts, size_bytes=7)
    assert hosts.calls == []


def test_an_open_circuit_keeps_a_job_from_the_host(tmp_path: Path) -> None:
    """Not one request is made, and the host is looked for at every hop."""
    with ScriptedHost([whole(PNG)]) as host, ScriptedHost([redirect(f"{host.url}/x.png")]) as front:
        hosts = PlayedHosts(wait=PROBE_WAIT)
        for first in (host, front):
            with pytest.raises(CircuitOpenError, match="its circuit is open"):
                publish(tmp_path, first, hosts, failing={f"127.0.0.1:{host.port}": True})
        assert host.requests == []
        assert len(front.requests) == 1


def test_a_probe_closes_the_circuit_of_every_host_on_its_way(tmp_path: Path) -> None:
    with ScriptedHost([whole(PNG)]) as host, ScriptedHost([redirect(f"{host.url}/x.png")]) as front:
        names = [f"127.0.0.1:{front.port}", f"127.0.0.1:{host.port}"]
        hosts = PlayedHosts()
        publish(tmp_path, front, hosts, failing={names[0]: False, names[1]: True})
    assert hosts.calls == [("probe", names[1]), ("worked", names[0]), ("worked", names[1])]


def test_a_store_that_is_away_decides_nothing(tmp_path: Path) -> None:
    """The host is asked, and what it does is what happens to the file."""
    with ScriptedHost([whole(PNG)]) as host:
        publish(tmp_path / "a", host, PlayedHosts(away=True), failing={f"127.0.0.1:{host.port}": True})
    with ScriptedHost([whole(b"", status=503)]) as host, pytest.raises(DownloadError, match="503"):
        publish(tmp_path / "b", host, PlayedHosts(away=True))


def test_files_of_one_attempt_ask_once_and_count_once() -> None:
    """However many of them one host keeps from coming; a whole one afterwards says that it works."""
    name, hosts, people = "media.sume.com", PlayedHosts(opens=True), PlayedPeople()
    circuits = circuits_of(replace(LEASE, failing_hosts={name: True}), hosts, people)
    for _ in range(4):
        circuits.admit(name)
        circuits.failed(DownloadError("cut", host=name))
    circuits.failed(DownloadError("gone"))
    circuits.worked((name,))
    assert hosts.calls == [("probe", name), ("failed", name), ("worked", name)]
    assert people.told == [name]
