"""The signing secret is rotated: any of several signs, and it shows which was last used, so that the old one can go."""

import psycopg
import pytest

from shared.config import Settings
from shared.sume.signature import tag_of
from tests.api.harness import Headers, body_of, call, deliver, receiving, run, signed
from tests.conftest import MakeSettings

OLD, NEW, UNUSED = "whsec_old_and_known", "whsec_new_and_known", "whsec_not_yet_used"
TOKEN = "a-token-of-the-operators"
ASKED: Headers = [(b"authorization", f"Bearer {TOKEN}".encode())]


@pytest.fixture
def settings(make_settings: MakeSettings, database_url: str, redis_url: str) -> Settings:
    """A receiver in the middle of a rotation."""
    return make_settings(
        database_url=database_url,
        redis_url=redis_url,
        ops_token=TOKEN,
        sume_com_webhook_signing_secret=f"{UNUSED}, {OLD}, {NEW}",
    )


async def used(settings: Settings) -> list[bool]:
    """Return which secrets the statistics and the metrics both say were used, in the order of the setting."""
    async with receiving(settings) as app:
        shown = (await call(app, "GET", "/v1/stats", headers=ASKED)).json["signing_secrets"]
        assert [secret["position"] for secret in shown] == list(range(1, len(shown) + 1))
        text = (await call(app, "GET", "/metrics")).body.decode()
    name = "sume_signing_secret_last_used_timestamp_seconds"
    figures = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith(f"{name}{{")]
    assert [float(figure) > 0 for figure in figures] == [secret["last_used_at"] is not None for secret in shown]
    return [secret["last_used_at"] is not None for secret in shown]


def test_the_use_of_each_secret_is_shown_by_its_place(settings: Settings, make_settings: MakeSettings) -> None:
    """And follows the secret when the list is edited: a secret put in another's place has not been used by that."""

    async def story() -> None:
        assert await used(settings) == [False, False, False]
        async with receiving(settings) as app:
            for secret in (OLD, NEW):
                assert (await deliver(app, body_of(), headers=signed(body_of(), secret=secret))).status == 204
        assert await used(settings) == [False, True, True]
        edited = make_settings(**settings.model_dump() | {"sume_com_webhook_signing_secret": f"{NEW},{UNUSED}"})
        assert await used(edited) == [True, False]

    run(story)


@pytest.mark.parametrize("headers", [signed(body_of(), secret=OLD, age=1000), signed(b"other", secret=OLD), []])
def test_what_is_refused_uses_no_secret(headers: Headers, settings: Settings) -> None:
    """A recorded delivery, sent again outside the window, does not keep an old secret looking alive."""

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, body_of(), headers=headers)).status == 401
        assert await used(settings) == [False, False, False]

    run(story)


def test_a_test_delivery_and_a_quarantined_one_use_their_secret(settings: Settings) -> None:
    """Whatever was signed by it shows that Sume signs with it."""

    async def story() -> None:
        for body, secret in ((body_of(event="webhook.test"), OLD), (b"[]", NEW)):
            async with receiving(settings) as app:
                await deliver(app, body, headers=signed(body, secret=secret))
        assert await used(settings) == [False, True, True]

    run(story)


def test_a_delivery_signed_by_both_uses_both(settings: Settings) -> None:
    """Sume may sign with the old and the new one while it rotates; the old one is used as long as it does."""
    body = body_of()
    (name, old), stamp = signed(body, secret=OLD)
    (_, new), _ = signed(body, secret=NEW)

    async def story() -> None:
        async with receiving(settings) as app:
            assert (await deliver(app, body, headers=[(name, old + b"," + new), stamp])).status == 204
        assert await used(settings) == [False, True, True]

    run(story)


def test_nothing_of_a_secret_is_stored_but_two_bytes(settings: Settings) -> None:
    """Which is too little to check a guess by."""

    async def story() -> None:
        async with receiving(settings) as app:
            await deliver(app, body_of(), headers=signed(body_of(), secret=OLD))

    run(story)
    assert settings.database_url is not None
    with psycopg.connect(settings.database_url.get_secret_value()) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sume_counters")}
    assert names == {"accepted", f"secret:{tag_of(OLD.encode())}"}
    assert len(tag_of(OLD.encode())) == 4
