"""A paused monitor finds no due sites, on either database."""

from datetime import timedelta

from retainer.cli.accounts import resume
from retainer.identity import closing
from retainer.outbound import pause
from retainer.outbound.leases import Places
from retainer.outbound.pause import MONITOR
from retainer.sites.monitor import schedule
from retainer.sites.uptime import suspend_all
from retainer.values.exact import instant_after, utcnow


def claimed(store):
    """Return how many sites a monitor finds and leases."""
    return len(schedule.DUE.claim(store, Places(10, ()), timedelta(minutes=1)))


def test_no_site_of_a_suspended_account_is_claimed_and_none_is_late(api, other_tenant):
    for each in (api, other_tenant):
        each.make("/sites")
    with api.operating() as tx:
        closing.suspend(tx, "an invoice is not paid")
    with api.store.unscoped() as tx:
        tx.now = later = instant_after(utcnow(), timedelta(minutes=3))
        assert schedule.lateness(tx) > timedelta(minutes=2), "the site of the other account is"
    assert claimed(api.store) == 1
    with api.store.unscoped() as tx:
        tx.now = later
        assert schedule.lateness(tx) < timedelta(minutes=3)
    with api.operating() as tx:
        resume(tx)
    assert claimed(api.store) == 1


def test_no_site_is_claimed_from_a_pause_until_it_is_resumed(api):
    api.make("/sites")
    assert pause.warning(api.store, MONITOR) is None
    pause.pause(api.store, MONITOR, "a first reason")
    pause.pause(api.store, MONITOR, "a second reason")
    assert claimed(api.store) == 0
    warning = pause.warning(api.store, MONITOR)
    assert "a second reason" in warning
    assert "retainer monitor --resume" in warning
    pause.resume(api.store, MONITOR, suspend_all)
    pause.resume(api.store, MONITOR, suspend_all)
    assert pause.warning(api.store, MONITOR) is None
    assert claimed(api.store) == 1
