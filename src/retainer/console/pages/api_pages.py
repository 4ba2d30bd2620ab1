"""The page of the API: its switch, plan, keys and last requests; and the page that switches it on or off."""

from retainer.console import charts, words
from retainer.console.page_context import PageContext, Reply
from retainer.errors import Refusal, invalid
from retainer.events import webhooks
from retainer.identity import accounts
from retainer.identity.keys import key_list
from retainer.identity.plans import PLANS, WITH_API, includes_api
from retainer.store.tx import Tx
from retainer.traffic import counts
from retainer.traffic.request_log import LogFilter, list_requests

CONFIRMATION = "switch off"
RECENT_FAILURES = 5


def show(tx: Tx, context: PageContext) -> Reply:
    account = accounts.get_account(tx)
    keys = key_list.list_keys(tx)
    failed = LogFilter(status="5xx", since=counts.last_hours(tx).since)
    return context.render(
        "api",
        account=account,
        plan=PLANS[account["plan"]],
        is_included=includes_api(account["plan"], account["trial_ends_at"], tx.now),
        plans_with_api=WITH_API,
        keys=keys,
        live=key_list.live_keys(tx),
        remarkable=[key for key in keys if key.warnings],
        halted=[webhook for webhook in webhooks.load_webhooks(tx) if webhook.status_reason],
        chart=charts.hourly_chart(tx),
        failures=list_requests(tx, failed, limit=RECENT_FAILURES).requests,
        names={key.id: key.name for key in keys},
    )


def show_switch(tx: Tx, context: PageContext) -> Reply:
    account = accounts.get_account(tx)
    return context.render(
        "switch",
        account=account,
        is_included=includes_api(account["plan"], account["trial_ends_at"], tx.now),
        plans_with_api=WITH_API,
        live=key_list.live_keys(tx),
        last_hour=counts.last_hour(tx),
        confirmation=CONFIRMATION,
    )


def switch(tx: Tx, context: PageContext) -> Reply:
    """Switch the API; off needs a typed confirmation. Raises `validation_failed`, `plan_required`, `trial_ended`."""
    if context.form.text("on"):
        try:
            accounts.switch_api(tx, on=True)
        except Refusal as refusal:
            advice = f"For one that does ({WITH_API}), ask {context.operator}."
            raise Refusal(refusal.code, f"Your plan does not include the API. {advice}") from None
        return context.redirect("/api", "The API is on.")
    if context.form.text("confirmation").casefold() != CONFIRMATION:
        raise invalid({"confirmation": [f"To confirm, type “{CONFIRMATION}”."]})
    live = key_list.live_keys(tx).keys
    accounts.switch_api(tx, on=False)
    return context.redirect("/api", f"The API is off. {words.count(len(live), 'key')} stopped working.", kind="warn")
