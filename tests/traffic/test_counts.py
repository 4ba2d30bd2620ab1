"""Counts answer what an admin asks: how much, by whom, what failed, how near the limit, who calls what."""

import pytest
from sqlalchemy import update

from retainer.identity.keys.keys import KeyDetails, create_key
from retainer.schema.identity import accounts
from retainer.traffic import counts
from retainer.traffic.counts import Counts
from retainer.values.exact import utcnow
from tests.traffic.common import NOON, answered, asked, later, write

HOUR_AGO = later(-3600)


@pytest.fixture
def busy(both):
    """An agency with requests in two hours, of two keys; beside another one with requests of its own."""
    api, other = both
    with api.operating() as tx:
        second, _ = create_key(tx, KeyDetails("Second", api.admin_id, ["clients:read"]))
    write(
        api,
        *(answered(api, time=later(n)) for n in range(5)),
        *(answered(api, time=later(60 + n), status=429, operation=None) for n in range(7)),
        answered(api, time=later(3700), status=500, operation="createClient"),
        answered(api, time=later(3701), status=404, operation="getClient"),
        *(answered(api, key_id=second, time=later(3600 + n)) for n in range(3)),
    )
    write(other, *(answered(other, time=later(n)) for n in range(9)))
    return api, second


def test_each_hour_has_its_counts_and_the_busiest_minute(busy):
    api, second = busy
    first = Counts(requests=12, client_errors=7, server_errors=0, limited=7, busiest_minute=7)
    assert asked(api, counts.by_hour, HOUR_AGO, later(7200)) == {
        HOUR_AGO: Counts(),
        NOON: first,
        later(3600): Counts(5, 1, 1, 0, 3),
        later(7200): Counts(),
    }
    assert asked(api, counts.by_hour, NOON, NOON, key_id=second) == {NOON: Counts()}
    assert asked(api, counts.by_hour, later(3600), later(3600), key_id=second) == {later(3600): Counts(3, 0, 0, 0, 3)}


def test_each_key_has_its_counts(busy):
    api, second = busy
    assert asked(api, counts.by_key, NOON, later(7200)) == {
        api.key_id: Counts(14, 8, 1, 7, 7),
        second: Counts(3, 0, 0, 0, 3),
    }
    assert asked(api, counts.by_key, later(7200), later(7200)) == {}


def test_a_later_batch_of_a_minute_counts_with_the_earlier_ones(api):
    for n in range(4):
        write(api, answered(api, time=later(10 * n)))
    write(api, answered(api, time=later(70)))
    assert asked(api, counts.by_key, NOON, later(70))[api.key_id].busiest_minute == 4


def test_the_busiest_minute_of_a_day_is_that_of_its_busiest_hour(busy):
    api, _ = busy
    assert asked(api, counts.by_day, 1, last=NOON[:10]) == {NOON[:10]: Counts(17, 8, 1, 7, 7)}


def test_operations_say_what_a_key_does_and_which_keys_call_one(busy):
    api, second = busy
    of_key = asked(api, counts.operations, NOON, key_id=api.key_id)
    assert [(each.operation, each.requests, each.client_errors, each.server_errors) for each in of_key] == [
        ("listClients", 5, 0, 0),
        ("createClient", 1, 0, 1),
        ("getClient", 1, 1, 0),
    ]
    callers = asked(api, counts.operations, NOON, operation="listClients")
    assert [(each.key_id, each.requests, each.last_hour) for each in callers] == [
        (api.key_id, 5, NOON[:13]),
        (second, 3, later(3600)[:13]),
    ]


def test_the_last_hour_is_exact(api):
    now = utcnow()
    write(api, *(answered(api, time=later(seconds, now)) for seconds in (-3601, -3000, -10)))
    assert asked(api, counts.last_hour) == {api.key_id: 2}


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Auckland", "Asia/Kolkata"])
def test_days_are_those_of_the_accounts_zone(api, zone):
    with api.store.unscoped(write=True) as tx:
        tx.run(update(accounts).where(accounts.c.id == api.account_id).values(timezone=zone))
    now = utcnow()
    write(api, *(answered(api, time=later(-3600 * n, now)) for n in range(24 * 5)))
    days = asked(api, counts.by_day, 3)
    assert list(days) == sorted(days)
    today, yesterday = asked(api, lambda tx: tx.today), list(days)[1]
    assert list(days)[-1] == today
    assert days[yesterday].requests in {23, 24, 25}
    assert days[today].requests <= 25  # 0 in the half hour after midnight, where the hour began on the day before
    assert asked(api, counts.usage, 3) == {api.key_id: [each.requests for each in days.values()]}
    assert asked(api, counts.by_day, 3, key_id=api.key_id) == days
