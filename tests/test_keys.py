"""Keys as an admin makes them."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from retainer.errors import Refusal

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("late", [timedelta(0), timedelta(microseconds=1), timedelta(days=400)])
def test_a_key_cannot_be_created_expired(api, late):
    moment = (NOW - late).isoformat()
    with time_machine.travel(NOW, tick=False), pytest.raises(Refusal) as refused:
        api.new_key(expires_at=moment)
    assert refused.value.code == "validation_failed"
    (message,) = refused.value.members["errors"]["expires_at"]
    assert message.startswith("Must be in the future; it is 2026-03-10T09:00:00.000000Z.")


def test_a_key_works_until_the_moment_it_expires(api):
    with time_machine.travel(NOW, tick=False) as clock:
        key = api.new_key(expires_at="2026-03-10T09:01:00.000000Z")
        clock.shift(59)
        assert api.get("/me", key=key).status == 200
        clock.shift(1)
        assert api.get("/me", key=key).code == "expired_key"
