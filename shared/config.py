"""The only reader of the environment."""

import os
import re
from collections.abc import Callable
from datetime import timedelta
from ipaddress import IPv6Address
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from shared.errors import SettingsError

HANDLER_PATTERN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
HOST_PATTERN = re.compile(r"(\*\.)?(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]*[a-z0-9])?)(:[0-9]{1,5})?")
HEADER_PATTERN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
ADDRESS_PATTERN = re.compile(
    r"(\[(?P<v6>[0-9a-fA-F:.]+)\]|[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?):(?P<port>[0-9]{1,5})"
)
QUEUE_PATTERN = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def split_commas(value: object) -> object:
    """Split a comma-separated setting, trimming white space; an empty entry beside a real one is refused."""
    if not isinstance(value, str):
        return value
    entries = [entry.strip() for entry in value.split(",")]
    if not any(entries):
        return ()
    if not all(entries):
        raise ValueError("has an empty entry; remove the stray comma")
    return tuple(entries)


def none_if_blank(value: object) -> object:
    """Take a blank secret for one that is not set: it would be a password that anybody can guess."""
    return (value.strip() or None) if isinstance(value, str) else value


def matching(pattern: re.Pattern[str], wanted: str) -> AfterValidator:
    """Refuse a text that is not wholly of the pattern, saying what is wanted."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"must be {wanted}")
        return value

    return AfterValidator(check)


def url_of(*schemes: str, needs_host: bool = True) -> AfterValidator:
    """Refuse a URL of another scheme; the text of the error never repeats the URL, which may hold a password."""

    def check(value: SecretStr | str) -> SecretStr | str:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        try:
            parts = urlsplit(text)
            host, _port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError("is not a URL that can be read") from error
        if parts.scheme not in schemes:
            raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        if parts.netloc.count("@") > 1:
            raise ValueError("has an @ in its user name or password; write it as %40")
        if needs_host and parts.scheme != "unix" and not host:
            raise ValueError("names no host")
        return value

    return AfterValidator(check)


def check_redis_options(value: SecretStr) -> SecretStr:
    """Refuse a query that the Redis client cannot use; it would raise something else only when it connects."""
    if "?" not in value.get_secret_value():
        return value
    from redis import ConnectionPool  # noqa: PLC0415 - hardly any REDIS_URL has options

    try:
        pool = ConnectionPool.from_url(value.get_secret_value())
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError):
        raise ValueError("has an option that redis-py does not know or cannot use") from None  # its text may repeat it
    return value


def check_storage(value: str) -> str:
    """Accept the storage schemes this release can write to."""
    scheme, separator, path = value.partition("://")
    if not separator:
        raise ValueError("must be a URL such as file://./artifacts")
    if scheme != "file":
        raise ValueError(f"scheme {scheme!r} is not supported by this release; use file://PATH")
    if not path or "\0" in path:
        raise ValueError("names no folder; use file://./artifacts or file:///srv/artifacts")
    return value


def check_alert_url(value: str) -> str:
    """Accept what Apprise can send to; the error never repeats the URL, which holds credentials."""
    import apprise  # noqa: PLC0415 - 0.2 s to import, and most settings name no alert URL

    if apprise.Apprise.instantiate(value, suppress_exceptions=True) is None:
        raise ValueError("holds an entry that is not an Apprise URL; see https://github.com/caronc/apprise/wiki")
    return value


def check_address(value: str) -> str:
    """Accept host:port, an IPv6 host in brackets."""
    found = ADDRESS_PATTERN.fullmatch(value)
    if not found or not 1 <= int(found["port"]) <= 65_535 or not is_ipv6(found["v6"] or "::"):  # noqa: PLR2004 - TCP's
        raise ValueError("must be host:port, an IPv6 host in brackets")
    return value


def is_ipv6(text: str) -> bool:
    """Whether the text is an IPv6 address."""
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


Commas = BeforeValidator(split_commas)
Secrets = Annotated[tuple[SecretStr, ...], NoDecode, Commas]
HostEntry = Annotated[
    str,
    BeforeValidator(str.lower),
    matching(HOST_PATTERN, "a list of hosts such as media.sume.com,*.sume.com"),
]
AlertUrl = Annotated[str, AfterValidator(check_alert_url)]
HeaderName = Annotated[str, matching(HEADER_PATTERN, "an HTTP header name")]
Token = Annotated[SecretStr | None, BeforeValidator(none_if_blank)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Bytes = Annotated[int, Field(ge=0, le=2**53)]


class Settings(BaseSettings):
    """Every setting of CONTRACT section 3, checked; field names are the environment's in lower case."""

    model_config = SettingsConfigDict(
        env_file=".env", env_ignore_empty=True, extra="ignore", frozen=True, hide_input_in_errors=True
    )

    sume_com_webhook_signing_secret: Secrets = ()
    sume_api_key: Token | None = None
    sume_api_base_url: Annotated[str, url_of("https", "http")] = "https://api.open.sume.com"
    sume_signature_header: HeaderName = "X-Sume-Signature"
    sume_timestamp_header: HeaderName = "X-Sume-Timestamp"
    webhook_tolerance_seconds: Seconds = 300
    webhook_max_bytes: Count = 1_048_576
    webhook_timeout_seconds: Seconds = 5
    database_url: Annotated[SecretStr, url_of("postgresql", "postgresql+psycopg", needs_host=False)] | None = None
    redis_url: Annotated[SecretStr, url_of("redis", "rediss", "unix"), AfterValidator(check_redis_options)] | None = (
        None
    )
    queue_name: Annotated[str, matching(QUEUE_PATTERN, "1-64 letters, digits, dots, dashes or underscores")] = "sume"
    storage_url: Annotated[str, AfterValidator(check_storage)] = "file://./artifacts"
    artifact_hosts: Annotated[tuple[HostEntry, ...], NoDecode, Commas] = ("media.sume.com", "*.sume.com")
    artifact_allow_insecure: bool = False
    storage_min_free_bytes: Bytes = 1_073_741_824
    artifact_max_bytes: Annotated[Bytes, Field(ge=1)] = 10_737_418_240
    download_concurrency: Annotated[int, Field(ge=1, le=64)] = 4
    download_stall_seconds: Seconds = 30
    job_timeout_seconds: Seconds = 3600
    lease_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    claim_stale_seconds: Seconds = 120
    max_attempts: Count = 8
    retry_for_seconds: Annotated[float, Field(ge=0, le=31_536_000)] = 86_400
    retry_base_seconds: Seconds = 5
    retry_max_seconds: Seconds = 900
    sweep_interval_seconds: Seconds = 10
    expect_due_seconds: Annotated[float, Field(ge=0, le=31_536_000)] = 600
    poll_interval_seconds: Seconds = 30
    poll_max_seconds: Seconds = 3600
    poll_give_up_seconds: Seconds = 604_800
    retention_days: Annotated[float, Field(ge=0, le=36_500)] = 30
    handler: Annotated[str, matching(HANDLER_PATTERN, "package.module:function")] | None = None
    alert_urls: Annotated[tuple[AlertUrl, ...], NoDecode, Commas] = ()
    ops_token: Token | None = None
    ops_bind: Annotated[str, AfterValidator(check_address)] | None = None
    log_format: Literal["json", "console"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @classmethod
    def load(cls, *needed: str, **overrides: Any) -> Self:
        """Read the environment and `.env`; `needed` names the settings this command cannot do without.

        Raises SettingsError for the first unusable or missing one, naming it and never repeating its value.
        """
        try:
            settings = cls(**overrides)
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(".env", f"cannot be read: {type(error).__name__}") from None
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            name = str(first["loc"][0]).upper()
            raise SettingsError(name, first["msg"].removeprefix("Value error, ")) from None
        for name in needed:
            if not getattr(settings, name.lower()):
                raise SettingsError(name.upper(), "is not set; set it in the environment or in .env")
        return settings

    @property
    def signing_secrets(self) -> tuple[bytes, ...]:
        """The webhook signing secrets, any of which may have signed (rotation); empty while not configured."""
        return tuple(s.get_secret_value().encode() for s in self.sume_com_webhook_signing_secret)

    @property
    def storage_path(self) -> Path:
        """The folder behind a `file://` STORAGE_URL, absolute."""
        return Path(self.storage_url.removeprefix("file://")).absolute()

    @property
    def ops_address(self) -> tuple[str, int] | None:
        """The host, without brackets, and the port of OPS_BIND."""
        if self.ops_bind is None:
            return None
        host, _, port = self.ops_bind.rpartition(":")
        return host.strip("[]"), int(port)

    def secret_values(self) -> list[str]:
        """Every secret text in these settings, for the log pipeline to strike out (I9)."""
        values = [s.get_secret_value() for s in self.sume_com_webhook_signing_secret]
        values += [s.get_secret_value() for s in (self.sume_api_key, self.ops_token) if s is not None]
        for url in (self.database_url, self.redis_url):
            parts = urlsplit(url.get_secret_value() if url is not None else "")
            options = [value for name, value in parse_qsl(parts.query) if "password" in name]
            values += [part for part in (parts.password, unquote(parts.password or ""), *options) if part]
        return values + list(self.alert_urls)

    def seconds(self, name: str) -> timedelta:
        """Return a `*_seconds` setting as the timedelta that code inside works with."""
        value: float = getattr(self, f"{name}_seconds")
        return timedelta(seconds=value)


SettingsLoader = Callable[[], Settings]

PASSED_ON = re.compile(r"PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|PYTHON\w+|SSL_\w+|LD_LIBRARY_PATH")


def child_environment(**overrides: str) -> dict[str, str]:
    """Return the environment for a process we start: what any program needs, and those of our settings named."""
    inherited = os.environ.items()  # noqa: TID251 - this module is the only reader of the environment
    return {name: value for name, value in inherited if PASSED_ON.fullmatch(name)} | overrides
