"""Clocks: what one that was ahead has put off is due once it is right; clocks that differ a little do no harm."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
import time_machine
from testing.process import until

from retainer.events.sender import loop as sender_loop
from retainer.events.sender import schedule as sender_schedule
from retainer.outbound import pause
from retainer.outbound.leases import Places
from retainer.sites import uptime
from retainer.sites.monitor import probe as monitor_probe
from retainer.sites.monitor import schedule as monitor_schedule
from retainer.sites.monitor.schedule import CheckResult
from tests.databases import only_postgresql, slow_on_each
from tests.kernel.test_conflicts import WAITING
from tests.webhooks.receiver import Hooked

pytestmark = slow_on_each
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
AHEAD = [timedelta(hours=2), timedelta(days=400)]


@pytest.fixture(params=AHEAD, ids=str)
def clock(request):
    """A clock that is ahead; `back` sets it right."""
    with time_machine.travel(START + request.param, tick=False) as traveller:
        traveller.back = lambda **later: traveller.move_to(START + timedelta(**later))
        yield traveller


@pytest.fixture
def right_clock():
    with time_machine.travel(START, tick=False) as traveller:
        yield traveller


@pytest.fixture
def hook(api):
    made = Hooked(api)
    yield made
    made.receiver.close()


def claim_sites(api):
    return monitor_schedule.DUE.claim(api.store, Places(10, ()), monitor_probe.Monitor.lease)


def claim_webhooks(api):
    return sender_schedule.DUE.claim(api.store, Places(10, ()), sender_loop.Sender.lease)


def check(api):
    """Check the due sites; return their number."""
    taken = claim_sites(api)
    for site in taken:
        monitor_schedule.save_result(api.store, site, CheckResult(is_up=True, status_code=200))
    return len(taken)


@pytest.mark.parametrize("interval", [60, 3600])
def test_a_site_that_was_created_or_checked_while_the_clock_was_ahead_is_due(api, clock, interval):
    api.make("/sites", url="http://checked.example", check_interval_seconds=interval)
    check(api)
    api.make("/sites", url="http://created.example", check_interval_seconds=interval)
    clock.back()
    assert claim_sites(api) == []
    monitor_schedule.refresh(api.store)
    assert check(api) == 2
    clock.back(seconds=interval)
    assert check(api) == 2, "and from now on in time"


def test_a_lease_of_a_monitor_that_died_while_the_clock_was_ahead_is_over(api, clock):
    api.make("/sites")
    assert len(claim_sites(api)) == 1
    clock.back()
    monitor_schedule.refresh(api.store)
    assert check(api) == 1


def test_sites_that_are_in_time_and_paused_ones_stay_as_they_are(api, right_clock):
    for interval in (60, 300, 86400):
        api.make("/sites", url=f"http://{interval}.example", check_interval_seconds=interval)
    paused = api.make("/sites", url="http://paused.example", monitoring_enabled=False)["id"]
    api.sql("UPDATE sites SET next_check_at = '2036-01-01T00:00:00.000000Z' WHERE id = $1", paused)
    check(api)
    right_clock.shift(-30)  # another server's clock is behind
    before = api.sql("SELECT id, next_check_at FROM sites ORDER BY id")
    monitor_schedule.refresh(api.store)
    assert api.sql("SELECT id, next_check_at FROM sites ORDER BY id") == before
    assert claim_sites(api) == []


def test_a_lease_of_a_sender_that_died_while_the_clock_was_ahead_is_over(api, clock, hook):
    api.make("/tags")
    assert len(claim_webhooks(api)) == 1
    clock.back()
    assert hook.send() == 1


def test_an_attempt_that_failed_while_the_clock_was_ahead_is_due_and_counts_from_now(api, clock, hook):
    hook.receiver.fail()
    api.make("/tags")
    api.make("/clients")
    for _ in range(4):  # the pauses grow
        hook.send()
        clock.shift(600)
    clock.back()
    assert hook.send() == 2
    (first, second) = hook.deliveries()
    assert first["next_attempt_at"] == second["next_attempt_at"] == "2026-03-02T12:00:05.000000Z"
    clock.back(seconds=6)
    hook.receiver.recover()
    assert hook.send() == 2
    assert hook.read()["pending_count"] == 0


def test_an_event_that_was_to_be_sent_again_while_the_clock_was_ahead_is_due(api, clock, hook):
    api.make("/tags")
    hook.send()
    api.post(f"{hook.path}/redeliver", {"event_id": 1})
    clock.back()
    assert hook.send() == 1


@only_postgresql
def test_a_clock_is_set_right_while_a_sender_saves(api, clock, hook):
    """A sender locks a webhook before its deliveries; the other order would be a deadlock."""
    hook.receiver.fail()
    api.make("/tags")
    hook.send()
    clock.back()
    with ThreadPoolExecutor(1) as pool:
        with api.store.unscoped(write=True) as tx:
            tx.all(sender_schedule.LOCK)
            done = pool.submit(sender_schedule.set_back, api.store, sender_loop.Sender.lease)
            until(lambda: api.sql(WAITING) == [(1,)], "it waits for the webhook")
            tx.change(sender_schedule.RETRY_ALL)
        assert done.result() is None
    assert hook.send() == 1


@only_postgresql
@pytest.mark.parametrize(
    ("table", "mark", "work", "begin_anew"),
    [
        ("webhooks", "pending_count", pause.WEBHOOKS, sender_schedule.retry_all),
        ("sites", "failures", pause.MONITOR, uptime.suspend_all),
    ],
)
def test_a_resume_locks_records_in_their_order(api, table, mark, work, begin_anew):
    """Of two transactions that lock several in different orders, one would fail."""
    for _ in range(2):
        api.make(f"/{table}")
    for record_id in (2, 1):  # their rows are in this order now
        api.sql(f"UPDATE {table} SET {mark} = 1 WHERE id = $1", record_id)
    pause.pause(api.store, work, "a rehearsal")
    with ThreadPoolExecutor(1) as pool:
        with psycopg.connect(api.app.settings.database) as other:
            other.execute(f"SELECT id FROM {table} WHERE id = 1 FOR UPDATE")
            done = pool.submit(pause.resume, api.store, work, begin_anew)
            until(lambda: api.sql(WAITING) == [(1,)], "it waits for the first")
            assert api.sql(f"SELECT id FROM {table} WHERE id = 2 FOR UPDATE NOWAIT") == [(2,)]
        assert done.result() is None
    assert pause.warnings(api.store) == []


def test_leases_and_pauses_of_a_server_whose_clock_is_a_little_ahead_hold(api, right_clock, hook):
    other = Hooked(api)
    hook.receiver.fail()
    api.make("/tags")
    hook.send()
    api.patch(other.path, {"status": "active"})
    api.make("/tags")
    taken = claim_webhooks(api)
    assert len(taken) == 2
    right_clock.shift(-20)
    assert hook.send() == 0
    other.receiver.close()
