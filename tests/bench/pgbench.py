"""The limit of the claim: what the same PostgreSQL makes of the same upsert under its own pgbench."""

import re
import subprocess
from pathlib import Path

from shared.claims.postgres.claiming import CLAIM
from shared.config import child_environment
from shared.sandbox.ports import LOOPBACK
from shared.sandbox.postgres import USER, Postgres
from tests.bench.deliveries import body_of

CLIENTS = 8
RATE = re.compile(r"^tps = ([0-9.]+) \(without initial connection time\)$", re.MULTILINE)


def script() -> str:
    """Return pgbench's script: the claim of one new job with every value a parameter, as in our batches."""
    columns = CLAIM[CLAIM.index("(") : CLAIM.index(")") + 1]
    update = CLAIM[CLAIM.index("ON CONFLICT") :].replace("$1::uuid", "gen_random_uuid()")
    payload = body_of("job_bench_00000000").decode().replace("'", "''")
    values = (
        "'job_' || :number", "'job.completed'", "'OK'", f"'{payload}'", "'webhook'",
        "'https://api.open.sume.com/v1/jobs/job_' || :number", "NULL", "NULL", "1", "gen_random_uuid()",
        "now() + interval '120 seconds'",
    )  # fmt: skip
    statement = f"INSERT INTO sume_jobs AS j {columns} VALUES ({', '.join(values)}) {update.strip()};"  # noqa: S608 - constants
    return f"\\set number random(1, 9000000000000000)\n{' '.join(statement.split())}\n"


def run(postgres: Postgres, *, database: str, folder: Path, seconds: int) -> float:
    """Return its claims a second."""
    if postgres.binaries is None:
        raise ValueError("start PostgreSQL first")
    path = folder / "claim.sql"
    path.write_text(script(), encoding="utf-8")
    done = subprocess.run(
        [
            postgres.binaries / "pgbench",
            *("-h", LOOPBACK, "-p", str(postgres.port), "-U", USER, "-n", "-M", "prepared"),
            *("-c", str(CLIENTS), "-j", "1", "-T", str(seconds), "-f", path, database),
        ],
        env=child_environment(PGPASSWORD=postgres.password),
        capture_output=True,
        text=True,
        check=False,
    )
    found = RATE.search(done.stdout)
    if done.returncode or found is None:
        raise RuntimeError(f"pgbench ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return float(found[1])
