"""The pages of webhooks: list, details with the log of deliveries, tests, pauses, and sending again."""

import msgspec

from retainer.console import forms, words
from retainer.console.names import Link, Names
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.request_pages import link_with
from retainer.errors import invalid
from retainer.events import deliveries, webhooks
from retainer.events.catalogue import RESOURCES
from retainer.events.deliveries import DeliveryFilter, Redelivery, WebhookDelivery
from retainer.events.webhooks import Webhook
from retainer.identity.quotas import find_excess
from retainer.kernel.paging import Page, listing
from retainer.kernel.resource import read_id
from retainer.schema import webhooks as schema
from retainer.store.announcements import DELETED
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx
from retainer.values.parameters import read_whole

PAGE = 25
TABLES = {resource_of(resource.table): resource.table for resource in RESOURCES if resource.table is not None}
"""The tables of records by the names of their types in events."""


def show_list(tx: Tx, context: PageContext) -> Reply:
    """Show the webhooks; an account has few."""
    has_room = find_excess(tx, "webhooks") is None
    found = webhooks.load_webhooks(tx)
    return context.render("webhooks", webhooks=found, has_room=has_room, types_in_words=types_in_words)


def show(tx: Tx, context: PageContext) -> Reply:
    webhook = webhook_of(tx, context)
    status = context.query.text("status")
    filters = DeliveryFilter(status=(status,) if status in deliveries.STATUSES else None)
    number = read_whole(context.query.text("page")) or 1
    page = Page(max(1, min(number, 1_000_000)), PAGE, ("-id",), "", "")
    found = listing(tx, schema.webhook_deliveries, WebhookDelivery, filters, page, webhook_id=webhook.id)
    return context.render(
        "webhook",
        webhook=webhook,
        deliveries=found.data,
        statuses=deliveries.STATUSES,
        chosen=status if status in deliveries.STATUSES else "",
        older=link_with(context, page=str(page.number + 1)) if page.number < found.meta.last_page else "",
        records=links_of(tx, context, found.data),
        types_in_words=types_in_words,
        scopes_in_words=words.scopes_in_words,
        today=tx.today,
    )


def send_test(tx: Tx, context: PageContext) -> Reply:
    """Queue a test. Raises `not_found`, and `locked` unless the webhook is active."""
    webhook = webhook_of(tx, context)
    deliveries.queue_test(tx, webhook)
    return context.redirect(f"/webhooks/{webhook.id}", "Test queued. Reload this page in a moment to see its result.")


def pause(tx: Tx, context: PageContext) -> Reply:
    return _set_status(tx, context, "paused", "Paused. Events wait until you resume it.")


def resume(tx: Tx, context: PageContext) -> Reply:
    """Let a webhook continue where it was. Raises `not_found`."""
    return _set_status(tx, context, "active", "Resumed. What is pending is sent now.")


def redeliver(tx: Tx, context: PageContext) -> Reply:
    """Send an event again, or all since a day. Raises `not_found`, `locked`, `validation_failed`."""
    webhook, form = webhook_of(tx, context), context.form
    if event_id := read_whole(form.text("event_id")):
        wanted = forms.read_new(Redelivery, form, event_id=event_id, since=None)
    else:
        try:
            since = words.day_start(form.text("since"), tx.actor.timezone)
        except (ValueError, OverflowError):
            raise invalid({"since": ["Choose the first day whose events are sent again."]}) from None
        wanted = forms.read_new(Redelivery, form, event_id=None, since=since)
    count = words.count(deliveries.redeliver(tx, webhook, wanted), "event")
    notice = f"Queued {count} to be sent again. Events keep their ids, so that receivers know them."
    return context.redirect(f"/webhooks/{webhook.id}", notice)


def show_delete(tx: Tx, context: PageContext) -> Reply:
    return context.render("webhook_delete", webhook=webhook_of(tx, context))


def delete(tx: Tx, context: PageContext) -> Reply:
    webhooks.remove_webhook(tx, webhook_of(tx, context))
    return context.redirect("/webhooks", "Webhook deleted. Nothing more is sent to it.", kind="warn")


def _set_status(tx: Tx, context: PageContext, status: webhooks.Status, notice: str) -> Reply:
    webhook = webhook_of(tx, context)
    webhooks.change_webhook(tx, webhook, msgspec.structs.replace(webhook, status=status))
    return context.redirect(f"/webhooks/{webhook.id}", notice)


def webhook_of(tx: Tx, context: PageContext) -> Webhook:
    return tx.get(schema.webhooks, read_id(context.path_parameters["webhook"], schema.webhooks), Webhook)


def links_of(tx: Tx, context: PageContext, found: list[WebhookDelivery]) -> dict[int, Link]:
    """Return the record of each delivery with its name; tests and deletions have none."""
    names, links = Names(tx, context.catalogue), {}
    for each in found:
        resource, _, change = each.type.partition(".")
        if resource in TABLES and change != DELETED:
            links[each.id] = names.refer(TABLES[resource], each.record_id)
    names.load()
    return links


def types_in_words(webhook: Webhook) -> str:
    """Return which events a webhook sends, as a phrase."""
    if webhook.types is not None:
        return words.count(len(webhook.types), "type")
    return "All events" if webhook.scopes == webhooks.READ_SCOPES else "All events that its key may read"
