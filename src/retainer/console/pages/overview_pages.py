"""The overview: the API's switch, the plan, and how the account's keys fare."""

from datetime import datetime, timedelta

from retainer.console import charts, words
from retainer.console.page_context import PageContext, Reply
from retainer.errors import invalid
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.plans import PLANS, includes_api
from retainer.store.tx import Tx
from retainer.traffic import counts, requests
from retainer.values.exact import instant_after

CONFIRMATION = "switch off"
DAY = timedelta(hours=23)
RECENT_FAILURES = 5


def show(tx: Tx, context: PageContext) -> Reply:
    """What an admin wants to know first."""
    account = accounts.get_account(tx)
    keys = key_list.list_keys(tx)
    by_hour = counts.by_hour(tx, instant_after(tx.now, -DAY), tx.now)
    timezone = account["timezone"]
    return context.render(
        "overview",
        account=account,
        plan=PLANS[account["plan"]],
        is_included=includes_api(account["plan"], account["trial_ends_at"], tx.now),
        keys=keys,
        live=key_list.live_keys(tx),
        remarkable=[key for key in keys if key.warnings],
        chart=charts.by_status({hour_label(hour, timezone): each for hour, each in by_hour.items()}),
        failures=requests.list_requests(
            tx, requests.Filter(status="5xx", since=instant_after(tx.now, -DAY)), limit=RECENT_FAILURES
        ).requests,
        names={key.id: key.name for key in keys},
    )


def show_switch(tx: Tx, context: PageContext) -> Reply:
    """What happens when the API is switched, before it is."""
    account = accounts.get_account(tx)
    return context.render(
        "switch",
        account=account,
        live=key_list.live_keys(tx),
        last_hour=counts.last_hour(tx),
        confirmation=CONFIRMATION,
    )


def switch(tx: Tx, context: PageContext) -> Reply:
    """Switch the API; off only when that was typed. Raises `validation_failed`, `plan_required`, `trial_ended`."""
    if context.form.text("on"):
        accounts.switch_api(tx, on=True)
        return context.redirect("", "The API is on.")
    if context.form.text("confirmation").casefold() != CONFIRMATION:
        raise invalid({"confirmation": [f"To confirm, type “{CONFIRMATION}”."]})
    live = key_list.live_keys(tx).keys
    accounts.switch_api(tx, on=False)
    return context.redirect("", f"The API is off. {words.count(len(live), 'key')} stopped working.", kind="warn")


def hour_label(hour: str, timezone: str) -> str:
    """Return an hour as the label of a bar, like `22 Nov, 14:00`."""
    at = datetime.fromisoformat(hour).astimezone(words.zone(timezone))
    return f"{at.day} {at:%b, %H:%M}"
