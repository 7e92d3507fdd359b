"""The folder of `sume-jobs dev`."""

import stat
import subprocess
from pathlib import Path

import pytest

from shared.sandbox.dev_folder import dev_folder, write_env
from shared.sandbox.wheels import SandboxError

AWKWARD = 'a\'b "c" $HOME `id` \\ é'


def test_one_process_at_a_time_and_emptied(tmp_path: Path) -> None:
    """A second one is refused; what an earlier one left is deleted, but nothing that a link leads to."""
    folder, elsewhere = tmp_path / ".dev", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").touch()
    with dev_folder(folder) as lent:
        (lent / "artifacts").mkdir()
        (lent / "artifacts" / "old").touch()
        (lent / "link").symlink_to(elsewhere)
        with pytest.raises(SandboxError, match="another sume-jobs dev runs here"), dev_folder(folder):
            pass
    with dev_folder(folder) as lent:
        assert [path.name for path in lent.iterdir()] == ["lock"]
    assert (elsewhere / "precious").exists()


def test_a_shell_reads_what_was_written(tmp_path: Path) -> None:
    """Any value arrives in a shell as it is; nobody else may read the file, and it is gone at the end."""
    with dev_folder(tmp_path / ".dev") as folder:
        path = write_env(folder, {"OPS_TOKEN": AWKWARD})
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        script = f'. {path}; printf "%s" "$OPS_TOKEN"; command -v sume-jobs'
        done = subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=True)
        assert done.stdout.startswith(AWKWARD)
        assert done.stdout.endswith("/sume-jobs\n")
    assert not path.exists()
