"""Plans: whether they include the API, the rate limit of their keys, and quotas of sites, webhooks, files and mail."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Select, func, select

from retainer.errors import Refusal
from retainer.schema.files import files
from retainer.schema.identity import accounts, logos
from retainer.schema.mail import messages
from retainer.settings import PREFIX, Settings, SettingsError
from retainer.store.engines.sql import start_of_day
from retainer.store.tables import NOW, totals
from retainer.store.tx import Tx
from retainer.values.exact import utcnow


class Plan(msgspec.Struct, frozen=True):
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


class Quota(NamedTuple):
    noun: str
    setting: str
    used: Select[Any]
    advice: str
    unit: int = 1  # how much of what is counted makes one of the quota, like 1024 bytes


def _count(name: str) -> Select[tuple[int]]:
    return select(totals.c.count).where(totals.c.name == name)


QUOTAS = {
    "sites": Quota("sites", "max_sites", _count("sites"), "Delete sites that are no longer maintained"),
    "webhooks": Quota("webhooks", "max_webhooks", _count("webhooks"), "Delete a webhook that is no longer needed"),
    "logos": Quota(
        "KB of logos",
        "max_logo_kb",
        select(func.sum(func.length(logos.c.content))),
        "Logos on issued documents are kept. Choose a smaller file",
        unit=1024,
    ),
    "messages": Quota(
        "messages a day",
        "max_messages",
        select(func.count(messages.c.id)).where(messages.c.created_at >= start_of_day(NOW)),
        "Send the others tomorrow",
    ),
    "files": Quota(
        "MB of files",
        "max_file_mb",
        select(func.sum(files.c.size)),
        "Delete files that are no longer needed",
        unit=1024 * 1024,
    ),
}

Limits = Mapping[str, Mapping[str, int]]


def limits_of(settings: Settings) -> Limits:
    """Return the limits that the operator has set. Raises SettingsError for a plan that does not exist."""
    limits = {}
    for name, quota in QUOTAS.items():
        default, *others = getattr(settings, quota.setting)
        exceptions = dict(part.split("=") for part in others)
        if unknown := [plan for plan in exceptions if plan not in PLANS]:
            setting = f"{PREFIX}{quota.setting.upper()}"
            raise SettingsError(f"{setting} names the plan {unknown[0]}. Plans: {', '.join(PLANS)}.")
        limits[name] = {plan: int(exceptions.get(plan, default)) for plan in PLANS}
    return limits


def list_uses(tx: Tx) -> list[tuple[int, int, str]]:
    """Return how much of each quota the account uses, the limit of its plan, and the noun of the quota."""
    plan = tx.field(accounts.c.plan, tx.account_id)
    return [(_used(tx, quota), tx.store.limits[name][plan], quota.noun) for name, quota in QUOTAS.items()]


def find_excess(tx: Tx, name: str, added: int = 1) -> str | None:
    """Return the error if the stored records and those `added` are more than the plan includes.

    Writers of an account wait for each other, so the result holds until the transaction ends.
    """
    if name not in tx.store.limits:
        return None
    quota, limits = QUOTAS[name], tx.store.limits[name]
    total = _used(tx, quota) + added
    if total <= min(limits.values()):  # most accounts: the plan need not be read
        return None
    limit = limits[tx.field(accounts.c.plan, tx.account_id)]
    if total <= limit:
        return None
    includes = f"The account would have {total:,} {quota.noun}, and its plan includes {limit:,}."
    return f"{includes} {quota.advice}, or ask the operator for more."


def _used(tx: Tx, quota: Quota) -> int:
    return -(-int(tx.value(quota.used) or 0) // quota.unit)
