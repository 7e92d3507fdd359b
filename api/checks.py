"""What can be said about a delivery before its body is understood: its headers and its signature."""

from collections.abc import Callable

from api.body import too_large
from shared.config import Settings
from shared.errors import DeliveryError
from shared.sume.signature import matches, parse_signatures, parse_timestamp, tag_of

Headers = list[tuple[bytes, bytes]]
"""As ASGI has them: names in lower case, in the order received, repeated ones repeated."""


class Checks:
    """The checks of CONTRACT section 4 up to `stale_timestamp`, each raising DeliveryError with its code."""

    def __init__(self, settings: Settings, *, unix_seconds: Callable[[], float]) -> None:
        self._unix_seconds = unix_seconds
        self._secrets = settings.signing_secrets
        self._tags = [tag_of(secret) for secret in self._secrets]
        self._signature_header = settings.sume_signature_header.lower().encode()
        self._timestamp_header = settings.sume_timestamp_header.lower().encode()
        self._limit = settings.webhook_max_bytes
        self._tolerance = settings.webhook_tolerance_seconds

    def check_announced(self, method: str, headers: Headers) -> None:
        """Refuse what can be refused without reading a byte of the body."""
        if method != "POST":
            raise DeliveryError("method_not_allowed", "Deliveries are sent with POST.")
        for name, value in headers:
            if name == b"content-length":
                if int(value) > self._limit:
                    raise too_large(self._limit)
            elif name == b"content-encoding" and not is_identity(value):
                raise DeliveryError("unsupported_encoding", "Send the body as it was signed, without Content-Encoding.")
        if not self._secrets:
            raise DeliveryError(
                "signing_secret_not_configured",
                "This receiver has no signing secret; set SUME_COM_WEBHOOK_SIGNING_SECRET and restart it.",
            )

    def read_signature(self, headers: Headers) -> tuple[list[bytes], bytes]:
        """Return the well-formed signatures and the timestamp; what is missing or ambiguous is refused."""
        given = [value for name, value in headers if name == self._signature_header]
        stamps = [value for name, value in headers if name == self._timestamp_header]
        signatures = parse_signatures(given[0]) if len(given) == 1 else []
        if not signatures or len(stamps) != 1 or parse_timestamp(stamps[0]) is None:
            signature, timestamp = self._signature_header.decode(), self._timestamp_header.decode()
            raise DeliveryError(
                "missing_signature",
                f"Send {signature} (v1=<64 hex digits>) and {timestamp} (Unix seconds, digits only), each once.",
            )
        return signatures, stamps[0]

    def check_signature(self, signatures: list[bytes], timestamp: bytes, body: bytes) -> list[str]:
        """Refuse a body that nobody with the secret signed, or not lately; the genuine is told why it is stale.

        Returns the tags of the secrets that signed it.
        """
        signers = matches(self._secrets, timestamp=timestamp, body=body, signatures=signatures)
        if not signers:
            raise DeliveryError(
                "bad_signature", "The signature does not match; compare the signing secret on both sides."
            )
        if abs(self._unix_seconds() - (parse_timestamp(timestamp) or 0)) > self._tolerance:
            raise DeliveryError(
                "stale_timestamp",
                f"The timestamp is more than {self._tolerance:g} seconds away; compare the clocks on both sides.",
            )
        return [self._tags[position] for position in signers]


def is_identity(codings: bytes) -> bool:
    """Whether a Content-Encoding says that there is none."""
    return all(coding.strip().lower() in {b"", b"identity"} for coding in codings.split(b","))
