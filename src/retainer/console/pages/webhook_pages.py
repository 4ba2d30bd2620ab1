"""The pages of webhooks: list, and details with the log of deliveries."""

from retainer.console import words
from retainer.console.names import Link, Names
from retainer.console.page_context import PageContext, Reply
from retainer.console.pages.request_pages import link_with
from retainer.console.pages.webhook_forms import WEBHOOKS
from retainer.events import deliveries, webhooks
from retainer.events.catalogue import RESOURCES
from retainer.events.deliveries import DeliveryFilter, WebhookDelivery
from retainer.events.webhooks import Webhook
from retainer.identity.quotas import find_excess
from retainer.kernel.paging import Page, listing
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
    webhook = WEBHOOKS.find(tx, context)
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
    )


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
