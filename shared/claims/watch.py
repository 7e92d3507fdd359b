"""What a claim store promises to whoever watches over the whole: signs of life, counts, alerts told once."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, Protocol, TypeAlias

Role: TypeAlias = Literal["scheduler", "worker"]
ROLES: tuple[Role, ...] = ("scheduler", "worker")


@dataclass(frozen=True, slots=True)
class Refusal:
    """How often deliveries were refused with one code, and how long ago the last was."""

    code: str
    count: int
    ago: timedelta
    headers: str | None
    """The names of the headers that came with the last one."""


@dataclass(frozen=True, slots=True)
class IntakeFacts:
    """What became of the deliveries so far, as all receivers counted them."""

    accepted: int
    accepted_ago: timedelta | None
    """Time since one was answered 2xx; None when none ever was."""
    redelivered: int
    """Accepted deliveries of a job that had been delivered before."""
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Alerts of one kind that were not sent, because one had been sent shortly before."""

    kind: str
    count: int


class WatchStore(Protocol):
    """What shows that something is wrong which no job tells of."""

    def beat(self, role: Role, name: str) -> None:
        """Note that a process lives."""
        ...

    def silent_for(self, role: Role) -> timedelta | None:
        """Return how long no process of the role has said that it lives; None when none ever did."""
        ...

    def intake_facts(self) -> IntakeFacts:
        """Return what became of the deliveries so far."""
        ...


class AlertStore(Protocol):
    """What keeps alerts from repeating, across processes."""

    def may_alert(self, kind: str, subject: str, *, every: timedelta) -> int | None:
        """Return how many of this kind and subject were held back since the last, or None to hold this one back."""
        ...

    def take_held_back(self, kinds: Collection[str], *, every: timedelta) -> list[HeldBack]:
        """Return what was held back of these kinds (without a subject) and not told of for `every`; then it is told.

        Each is given to one caller of any number.
        """
        ...
