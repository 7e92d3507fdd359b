"""Settings: read once, checked whole, and refused in one line that repeats no value."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.config import Settings, child_environment
from shared.errors import SettingsError


def load(*needed: str, **overrides: Any) -> Settings:
    return Settings.load(*needed, _env_file=None, **overrides)


def test_nothing_is_needed_to_read_the_defaults() -> None:
    """The defaults are a whole."""
    settings = load()
    assert settings.signing_secrets == ()
    assert settings.artifact_hosts == ("media.sume.com", "*.sume.com")
    assert settings.seconds("lease") == timedelta(seconds=60)


def test_the_environment_and_the_env_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment wins over `.env` in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("QUEUE_NAME=from-file\nMAX_ATTEMPTS=3\n")
    monkeypatch.setenv("QUEUE_NAME", "from-environment")
    settings = Settings.load()
    assert (settings.queue_name, settings.max_attempts) == ("from-environment", 3)


@pytest.mark.parametrize(
    ("value", "secrets"),
    [("", ()), ("  ", ()), (",", ()), ("one", (b"one",)), (" new , old ", (b"new", b"old")), ("sé", ("sé".encode(),))],
)
def test_signing_secrets_are_split_and_trimmed(value: str, secrets: tuple[bytes, ...]) -> None:
    """Rotation: any of several; unset and blank are the same."""
    assert load(sume_com_webhook_signing_secret=value).signing_secrets == secrets


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("sume_com_webhook_signing_secret", "real-secret,,", "empty entry"),
        ("sume_com_webhook_signing_secret", "real-secret, ,other", "empty entry"),
        ("database_url", "mysql://user:hunter2@host/db", "postgresql://"),
        ("database_url", "postgresql://user:hunter2@host:port/db", "can be read"),
        ("database_url", "hunter2", "postgresql://"),
        ("redis_url", "http://user:hunter2@host", "redis://"),
        ("redis_url", "redis://", "names no host"),
        ("storage_url", "ftp://hunter2", "not supported"),
        ("storage_url", "hunter2", "file://"),
        ("storage_url", "file://", "no folder"),
        ("alert_urls", "hunter2", "Apprise"),
        ("alert_urls", "json://localhost,,", "empty entry"),
        ("artifact_hosts", "media.sume.com,", "empty entry"),
        ("artifact_hosts", "https://media.sume.com", "list of hosts"),
        ("artifact_hosts", "*", "list of hosts"),
        ("handler", "no-colon", "package.module:function"),
        ("queue_name", "a b", "letters"),
        ("sume_signature_header", "X Sume", "header name"),
        ("database_url", "postgresql://u:hun@ter2@h/d", "%40"),
        ("expect_due_seconds", "inf", "less"),
        ("retry_for_seconds", "1e15", "less"),
        ("storage_min_free_bytes", "1" * 26, "less"),
        ("max_attempts", "1" * 23, "less"),
        ("max_attempts", "0", "greater"),
        ("max_attempts", "many", "integer"),
        ("lease_seconds", "-1", "greater"),
        ("lease_seconds", "nan", "less|greater"),
        ("sweep_interval_seconds", "inf", "less"),
        ("log_format", "xml", "console"),
        ("artifact_allow_insecure", "perhaps", "boolean"),
        ("sume_api_base_url", "ftp://api", "https://"),
        ("ops_bind", "8001", "host:port"),
        ("ops_bind", ":8001", "host:port"),
        ("ops_bind", "hunter2", "host:port"),
        ("ops_bind", "hunter2:", "host:port"),
        ("ops_bind", "hunter2:x", "host:port"),
        ("ops_bind", "127.0.0.1:0", "host:port"),
        ("ops_bind", "127.0.0.1:65536", "host:port"),
        ("ops_bind", "127.0.0.1:٨٠", "host:port"),
        ("ops_bind", "::1:8001", "host:port"),
        ("ops_bind", "http://hunter2:80", "host:port"),
        ("ops_bind", "[:::]:8001", "host:port"),
    ],
)
def test_an_unusable_value_is_refused_by_its_name(name: str, value: str, problem: str) -> None:
    """One line that names the setting, says what is wrong, and never repeats what may be a secret."""
    with pytest.raises(SettingsError, match=problem) as refused:
        load(**{name: value})
    assert refused.value.name == name.upper()
    assert str(refused.value).startswith(f"{name.upper()}: ")
    assert "\n" not in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert "real-secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["ops_token", "sume_api_key"])
def test_a_blank_secret_is_not_set(name: str) -> None:
    """White space would be a password that anybody can guess."""
    assert getattr(load(**{name: "  "}), name) is None


def test_a_missing_setting_is_named() -> None:
    """With what to do."""
    with pytest.raises(SettingsError, match="DATABASE_URL: is not set"):
        load("DATABASE_URL", "REDIS_URL")


def test_a_secret_is_not_shown_by_its_settings() -> None:
    """A logged settings object gives nothing away."""
    settings = load(
        sume_com_webhook_signing_secret="planted-1",
        sume_api_key="planted-2",
        ops_token="planted-3",
        database_url="postgresql://u:planted-4@h/d",
        redis_url="redis://:planted-5@h",
    )
    assert "planted" not in f"{settings!r} {settings}"
    assert {f"planted-{n}" for n in range(1, 6)} <= set(settings.secret_values())


def test_a_child_is_given_none_of_our_settings_but_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox starts its processes with what they need and no more."""
    monkeypatch.setenv("OPS_TOKEN", "the-developers-own")
    environment = child_environment(QUEUE_NAME="mine")
    assert environment["QUEUE_NAME"] == "mine"
    assert "OPS_TOKEN" not in environment
    assert "PATH" in environment


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("127.0.0.1:8001", ("127.0.0.1", 8001)),
        ("ops.example.com:65535", ("ops.example.com", 65535)),
        ("[::1]:8001", ("::1", 8001)),
        ("", None),
    ],
)
def test_the_address_for_operators(value: str, address: tuple[str, int] | None) -> None:
    """Host and port, IPv6 out of its brackets; unset and blank are the same."""
    assert load(ops_bind=value or None).ops_address == address
