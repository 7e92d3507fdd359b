"""The command `send`: deliver a body as Sume does."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from shared.cli.arguments import check_job_ids
from shared.cli.terminal import complain, note, say
from shared.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from shared.cli.sender import Delivery

URL = "http://127.0.0.1:8000/webhooks/sume"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog="Example: sume-jobs send --artifact-url https://media.sume.com/picture.png --times 3")(send)


def send(  # noqa: PLR0913, PLR0917 - one parameter an option of the contract
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", help="The body, sent byte for byte; - reads stdin.", show_default="a sample"),
    ] = None,
    job_id: Annotated[str | None, typer.Option(help="Job of the sample.", show_default="a fresh one")] = None,
    event: Annotated[str | None, typer.Option(help="Event of the sample.", show_default="job.completed")] = None,
    artifact_url: Annotated[
        list[str] | None, typer.Option(help="A file that the sample lists; may be repeated.", show_default=False)
    ] = None,
    url: Annotated[str, typer.Option(help="Where to send it; no proxy is used.")] = URL,
    secret: Annotated[
        str | None,
        typer.Option(help="Signing secret.", show_default="the first of SUME_COM_WEBHOOK_SIGNING_SECRET"),
    ] = None,
    times: Annotated[int, typer.Option(min=1, help="How often, one after the other, each signed afresh.")] = 1,
    timestamp: Annotated[
        str | None, typer.Option(help="Timestamp header, Unix seconds.", show_default="the time of sending")
    ] = None,
) -> int:
    """Sign a delivery body and POST it; prints each status code.

    Without FILE a sample is sent. It lists no files unless --artifact-url names some: the worker then asks Sume's
    API for the list, so with --job-id this stands in for a webhook that got lost. Exit status 1 unless every answer
    is 2xx.
    """
    check_url(url)
    check_signing(secret=secret, timestamp=timestamp)
    if file is not None:
        if job_id is not None or event is not None or artifact_url:
            raise UsageError("--job-id, --event and --artifact-url are for the sample; FILE is sent as it is")
        return deliver(read_file(file), url=url, secret=secret, times=times, timestamp=timestamp)
    from shared.cli.sample import fresh_job_id, sample_body  # noqa: PLC0415 - `--help` answers without loading it

    job_id = fresh_job_id() if job_id is None else job_id
    check_job_ids([job_id])
    body = sample_body(event or "job.completed", job_id=job_id, artifact_urls=artifact_url or [])
    status = deliver(body, url=url, secret=secret, times=times, timestamp=timestamp)
    if status == 0 and job_id.encode() in body:
        note(f"delivered {job_id}; to follow it: sume-jobs show {job_id}")
    return status


def check_url(url: str) -> None:
    """Refuse what nothing can be sent to."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable():
        raise UsageError(f"--url must be like {URL}")


def check_signing(*, secret: str | None, timestamp: str | None) -> None:
    """Refuse what no header can hold, and a secret that is none."""
    if timestamp is not None and not (timestamp and timestamp.isascii() and timestamp.isprintable()):
        raise UsageError("--timestamp must be printable ASCII, such as Unix seconds")
    if secret is not None and not secret.strip():
        raise UsageError("--secret is empty")


def read_file(file: str) -> bytes:
    """Return the bytes of a file, or of stdin for `-`."""
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error


def deliver(body: bytes, *, url: str, secret: str | None, times: int, timestamp: str | None) -> int:
    """Send the body and print the answers; return the exit status."""
    from shared.cli.sender import Sender  # noqa: PLC0415 - `--help` answers without loading it
    from shared.config import Settings  # noqa: PLC0415 - the same

    settings = Settings.load()
    secrets = settings.signing_secrets if secret is None else (secret.strip().encode(),)
    if not secrets:
        raise SettingsError("SUME_COM_WEBHOOK_SIGNING_SECRET", "is not set; set it, or give --secret")
    failed = 0
    with Sender(settings, url=url, secret=secrets[0]) as sender:
        for _ in range(times):
            failed += not report(sender.send(body, timestamp=timestamp))
    return 1 if failed else 0


def report(delivery: "Delivery") -> bool:
    """Print one answer; whether it is 2xx."""
    if delivery.code is not None:
        say(str(delivery.code))
    if not delivery.accepted:
        complain(delivery.problem)
    return delivery.accepted
