"""The notice on every page before a trial ends, if the API ends with it."""

from datetime import timedelta
from typing import NamedTuple

from retainer.console import words
from retainer.identity.actors import Person
from retainer.identity.plans import PLANS
from retainer.values.exact import instant_after

EARLY, LATE = timedelta(days=14), timedelta(days=3)


class TrialNotice(NamedTuple):
    """When the trial ends, and whether that is so soon that the notice is a warning."""

    ends: words.Moment
    is_late: bool


def trial_notice(person: Person, now: str) -> TrialNotice | None:
    """Return the notice for an admin: from 14 days before the end of a trial on, without a plan that has the API."""
    end = person.trial_ends_at
    if end is None or not now < end <= instant_after(now, EARLY) or PLANS[person.plan].has_api:
        return None
    return TrialNotice(words.moment(end, person.timezone, now), end <= instant_after(now, LATE))
