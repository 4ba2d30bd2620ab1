"""Plans: whether they include the API, and the rate limit of their keys."""

import msgspec

from retainer.errors import Refusal
from retainer.values.exact import utcnow


class Plan(msgspec.Struct, frozen=True):
    """A plan: whether it includes the API, and the rate limit of each key."""

    name: str
    has_api: bool
    requests_per_minute: int


PLANS = {
    plan.name: plan
    for plan in (
        Plan("solo", has_api=False, requests_per_minute=600),
        Plan("studio", has_api=False, requests_per_minute=600),
        Plan("agency", has_api=True, requests_per_minute=600),
        Plan("scale", has_api=True, requests_per_minute=1200),
        Plan("enterprise", has_api=True, requests_per_minute=3000),
    )
}
"""The plans by name. The limit of a plan without the API applies to trials."""
WITH_API = ", ".join(plan.name for plan in PLANS.values() if plan.has_api)


def includes_api(plan: str, trial_ends_at: str | None, now: str) -> bool:
    return PLANS[plan].has_api or (trial_ends_at is not None and now < trial_ends_at)


def require_api(plan: str, trial_ends_at: str | None) -> None:
    """Raise `plan_required` or `trial_ended` (402) unless the plan or a trial includes the API."""
    if PLANS[plan].has_api or includes_api(plan, trial_ends_at, utcnow()):  # the time is read only for a trial
        return
    change = f"Change the account's plan to one that does: {WITH_API}."
    if trial_ends_at is None:
        raise Refusal("plan_required", f"The plan {plan} does not include the API. {change}", plan=plan)
    raise Refusal(
        "trial_ended",
        f"The trial ended on {trial_ends_at[:10]} and the plan {plan} does not include the API. {change}",
        plan=plan,
    )
