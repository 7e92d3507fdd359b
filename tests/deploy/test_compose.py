"""docker-compose.yml fits the code; there is no Docker where the tests run, so it is read, not run."""

import ast
import re
from typing import Any

import pytest
from pydantic import SecretStr

from api.__main__ import parse as parse_api
from shared.cli.main import build_app
from shared.config import Settings
from shared.dashboard.__main__ import parse as parse_dashboard
from tests.deploy.files import VARIABLE, compose, example, instructions, ours, read, services

WEB = {"api": [8000, 8001], "rq-dashboard": [9181]}


def environment(service: dict[str, Any]) -> dict[str, str]:
    """Return a service's environment with every variable filled in."""
    return {name: VARIABLE.sub("filled", str(value)) for name, value in service.get("environment", {}).items()}


def settings_of(name: str) -> Settings:
    """Return the settings that a service of ours is given by docker-compose.yml."""
    given = environment(ours()[name])
    return Settings.load(_env_file=None, **{key.lower(): value for key, value in given.items()})


def test_the_services() -> None:
    """The production shape is whole."""
    assert set(services()) == {"postgres", "valkey", "migrate", "api", "worker", "scheduler", "rq-dashboard"}
    assert set(ours()) == set(services()) - {"postgres", "valkey"}


@pytest.mark.parametrize("name", ["migrate", "api", "worker", "scheduler"])
def test_commands_are_commands_of_ours(name: str) -> None:
    """Each command and each of its options is one that the console script has."""
    command, *arguments = ours()[name]["command"]
    assert command == name
    assert "entrypoint" not in ours()[name]
    import typer.main  # noqa: PLC0415 - only this test looks into the command line

    found = typer.main.get_command(build_app()).commands[command]  # type: ignore[attr-defined]  # a group has commands
    options = {option for parameter in found.params for option in parameter.opts}
    assert {argument for argument in arguments if argument.startswith("--")} <= options


def test_listeners_are_where_ports_and_checks_look() -> None:
    """The api and the dashboard listen in the container where their port is published from and checked."""
    for name, ports in WEB.items():
        service = ours()[name]
        parsed = parse_api(service["command"][1:]) if name == "api" else parse_dashboard(service["command"])
        assert (parsed.host, parsed.port) == ("0.0.0.0", ports[0])
        assert service["ports"] == [f"127.0.0.1:{port}:{port}" for port in ports]
    assert settings_of("api").ops_address == ("0.0.0.0", WEB["api"][1])
    assert f"EXPOSE {' '.join(str(port) for ports in WEB.values() for port in ports)}" in read("Dockerfile")
    assert ours()["rq-dashboard"]["entrypoint"] == ["python", "-m", "shared.dashboard"]


def test_only_loopback_is_published() -> None:
    """No port of the host is bound but on loopback, and none of a server."""
    published = {name: service["ports"] for name, service in services().items() if "ports" in service}
    assert set(published) == set(WEB)
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


@pytest.mark.parametrize("name", sorted(ours()))
def test_environments_are_settings(name: str) -> None:
    """Every name is a setting, and every value one that can be used."""
    assert {key.lower() for key in environment(ours()[name])} <= set(Settings.model_fields)
    settings = settings_of(name)
    assert settings.redis_url == SecretStr("redis://valkey:6379/0")
    if name != "rq-dashboard":
        assert settings.database_url == SecretStr("postgresql://sume:filled@postgres:5432/sume_jobs")
        assert str(settings.storage_path) == "/data/artifacts"


def test_the_database_is_the_one_postgres_makes() -> None:
    """User, password and database of the URL are those the server is created with."""
    postgres = services()["postgres"]["environment"]
    url = ours()["api"]["environment"]["DATABASE_URL"]
    parts = re.fullmatch(r"postgresql://(\w+):(\$\{POSTGRES_PASSWORD[^}]+\})@postgres:5432/(\w+)", url)
    assert parts
    assert parts.groups() == (postgres["POSTGRES_USER"], postgres["POSTGRES_PASSWORD"], postgres["POSTGRES_DB"])


def test_what_must_be_set_stops_compose_with_a_word() -> None:
    """A variable without a value ends `docker compose up` with what to do, and stands in .env.example."""
    variables = re.findall(r"\$\{(\w+)([^}]*)\}", read("docker-compose.yml"))
    assert {name for name, _ in variables} == {"POSTGRES_PASSWORD", "SUME_COM_WEBHOOK_SIGNING_SECRET", "OPS_TOKEN"}
    assert all(rest.startswith(":?set it in .env") for _, rest in variables)
    assert {name for name, _ in variables} <= set(example())


def test_other_settings_come_from_the_env_file() -> None:
    """The processes that read all settings are given .env; the others hold no secret they do not need."""
    assert {name for name, service in ours().items() if service.get("env_file") == [".env"]} == {
        "api",
        "worker",
        "scheduler",
    }


def test_dependencies() -> None:
    """What is waited for exists, and can come to that condition; Redis holds up nothing."""
    for name, service in services().items():
        for other, wanted in service.get("depends_on", {}).items():
            target = services()[other]
            if wanted["condition"] == "service_healthy":
                assert "healthcheck" in target, (name, other)
            elif wanted["condition"] == "service_completed_successfully":
                assert target["restart"] == "on-failure", (name, other)
            else:
                assert wanted == {"condition": "service_started"}
    for name in ("api", "worker", "scheduler"):
        assert ours()[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert ours()["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_everything_comes_back() -> None:
    """All but the one-shot is restarted whatever happened, and is given the time it needs to stop."""
    for name, service in services().items():
        assert service["restart"] == ("on-failure" if name == "migrate" else "always")
        assert int(service["stop_grace_period"].removesuffix("s")) >= 15


def test_volumes() -> None:
    """Data is in named volumes at the paths the images and our settings use."""
    mounts = {
        name: dict(volume.split(":") for volume in service["volumes"])
        for name, service in services().items()
        if "volumes" in service
    }
    artifacts = {"artifacts": "/data/artifacts"}
    assert mounts == {
        "postgres": {"postgres": "/var/lib/postgresql"},  # not .../data: since 18 that would lie outside the volume
        "valkey": {"valkey": "/data"},
        "worker": artifacts,
        "scheduler": artifacts,
    }
    assert set(compose()["volumes"]) == {volume for found in mounts.values() for volume in found}
    assert ("VOLUME", "/data/artifacts") in instructions()


def test_networks() -> None:
    """Postgres and Valkey are on a network without a way out, everybody is on a network that exists."""
    networks = compose()["networks"]
    assert networks["stores"] == {"internal": True}
    assert services()["postgres"]["networks"] == services()["valkey"]["networks"] == ["stores"]
    assert {name for service in services().values() for name in service["networks"]} == set(networks)


def test_valkey_keeps_what_it_is_given() -> None:
    """Messages outlive a restart and are never evicted."""
    command = services()["valkey"]["command"]
    assert command == ["valkey-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    assert services()["postgres"]["image"] == "postgres:18"


@pytest.mark.parametrize(("name", "path"), [("api", "/readyz"), ("rq-dashboard", "/livez")])
def test_health_checks_ask_what_is_answered(name: str, path: str) -> None:
    """The check is Python that can be read, and asks the port that serves it for a path of ours."""
    kind, program, option, code = ours()[name]["healthcheck"]["test"]
    assert (kind, program, option) == ("CMD", "python", "-c")
    texts = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)]
    assert {"127.0.0.1", WEB[name][-1], path} <= set(texts)
    source = "api/health.py" if name == "api" else "shared/dashboard/app.py"
    assert f'"{path}"' in read(source)


@pytest.mark.parametrize("name", sorted(ours()))
def test_our_containers_can_do_little(name: str) -> None:
    """No capability, nothing to write but the storage and a scratch folder."""
    service = ours()[name]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert (service["read_only"], service["tmpfs"], service["init"]) == (True, ["/tmp"], True)  # noqa: S108 - a tmpfs of its own
