"""The files of the deployment, read."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
VARIABLE = re.compile(r"\$\{(\w+)[^}]*\}")


def read(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def compose() -> dict[str, Any]:
    """Return docker-compose.yml, its merge keys resolved as Compose does."""
    document: dict[str, Any] = yaml.safe_load(read("docker-compose.yml"))
    return document


def services() -> dict[str, dict[str, Any]]:
    """Return the services by name."""
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    """Return the services that run our image."""
    return {name: service for name, service in services().items() if service["image"] == "sume-jobs"}


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions in order, continued lines joined, comments left out."""
    lines = [line for line in read("Dockerfile").splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines())]


def example() -> dict[str, tuple[str, bool]]:
    """Return value and whether it is commented out, by name, of .env.example."""
    found = re.findall(r"^(#?)([A-Z][A-Z_]+)=(.*)$", read(".env.example"), re.MULTILINE)
    return {name: (value, mark == "#") for mark, name, value in found}
