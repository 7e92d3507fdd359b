""".env.example lists every setting as the code has it."""

from pathlib import Path

import pytest

from shared.config import Settings
from tests.deploy.files import ROOT, example, read

OF_COMPOSE = {"POSTGRES_PASSWORD"}


def shown(default: object) -> str:
    """Return a default as a person writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(default)
    return "" if default is None else str(default)


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_each_setting_with_its_default(name: str) -> None:
    """A setting stands there once, with the default, commented out unless it must be set."""
    value, commented = example()[name.upper()]
    assert value == shown(Settings.model_fields[name].default)
    assert commented == (name != "sume_com_webhook_signing_secret")


def test_nothing_else() -> None:
    """What is no setting belongs to docker-compose.yml."""
    assert {name.lower() for name in set(example()) - OF_COMPOSE} == set(Settings.model_fields)
    assert all(f"${{{name}:?" in read("docker-compose.yml") for name in OF_COMPOSE)


def test_each_has_a_line_about_it() -> None:
    """Above each, or above the pair it belongs to, stands a comment."""
    lines = read(".env.example").splitlines()
    for index, line in enumerate(lines):
        if line.removeprefix("#").partition("=")[0] in example() and "=" in line:
            above = lines[index - 1]
            assert above.startswith("# ") or above.removeprefix("#").partition("=")[0] in example(), line


def test_it_can_be_copied_as_it_is(tmp_path: Path) -> None:
    """A copy changes no default, commented or not."""
    plain, commented = tmp_path / "plain", tmp_path / "commented"
    plain.write_text(read(".env.example"), encoding="utf-8")
    values = "".join(f"{name}={value}\n" for name, (value, _) in example().items())
    commented.write_text(values, encoding="utf-8")
    assert Settings.load(_env_file=plain) == Settings.load(_env_file=commented) == Settings.load(_env_file=None)
    assert ".env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
