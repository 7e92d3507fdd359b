"""A simulated Sume for each test."""

from collections.abc import Iterator

import pytest

from shared.sandbox.sume import Sume


@pytest.fixture
def sume() -> Iterator[Sume]:
    """A simulated Sume of the test's own."""
    with Sume(secret="s") as sume:
        yield sume
