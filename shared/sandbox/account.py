"""The user that a server runs as when we are root."""

import os
import pwd
from dataclasses import dataclass
from typing import Any

from shared.sandbox.wheels import SandboxError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """The user and group that PostgreSQL runs as."""

    uid: int
    gid: int


def unprivileged_account() -> Account | None:
    """Return whom PostgreSQL must run as: None for ourselves, `nobody` when we are root, which it refuses."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise SandboxError(f"PostgreSQL refuses to run as root, and there is no user {UNPRIVILEGED}") from None
    return Account(entry.pw_uid, entry.pw_gid)


def run_as(account: Account | None) -> dict[str, Any]:
    """Return the arguments that make `subprocess` start a command as this account; none of them for None."""
    return {} if account is None else {"user": account.uid, "group": account.gid, "extra_groups": []}
