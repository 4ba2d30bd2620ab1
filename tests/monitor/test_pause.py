"""A paused monitor finds no due sites, on either database."""

from datetime import timedelta

from retainer.fairness import Places
from retainer.outbound import pause
from retainer.outbound.pause import MONITOR
from retainer.sites.monitor import schedule
from retainer.sites.uptime import suspend_all


def claimed(store):
    """Return how many sites a monitor finds and leases."""
    return len(schedule.DUE.claim(store, Places(10, ()), timedelta(minutes=1)))


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
