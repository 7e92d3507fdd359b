"""A simulated Sume that knows every job."""

import json
import urllib.request
from typing import Any

import pytest

from shared.sandbox.sume import Sume


def ask(sume: Sume, path: str) -> Any:
    """Return the data of one answer of the job API."""
    request = urllib.request.Request(f"{sume.api_url}{path}", headers={"Authorization": f"Bearer {sume.api_key}"})  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - the same
        return json.load(answer)["data"]


def test_a_job_that_is_asked_about_exists() -> None:
    """It is completed, with one picture that can be fetched."""
    with Sume(secret="s", every_job=b"a picture") as sume:
        assert ask(sume, "/v1/jobs/job_made_up/status")["sume_status"] == "completed"
        [artifact] = ask(sume, "/v1/jobs/job_made_up/result")["result"]["artifacts"]
        with urllib.request.urlopen(artifact["url"], timeout=5) as picture:  # noqa: S310 - loopback
            assert picture.read() == b"a picture"


def test_by_itself_it_knows_none() -> None:
    """Without being told so, it answers 404."""
    with Sume(secret="s") as sume, pytest.raises(urllib.error.HTTPError, match="404"):
        ask(sume, "/v1/jobs/job_made_up/status")
