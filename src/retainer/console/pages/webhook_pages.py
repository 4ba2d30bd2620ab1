"""The pages of webhooks: the list, details with the log of deliveries, and their forms."""

from functools import partial

from retainer.console import words
from retainer.console.controls.control import Field
from retainer.console.controls.days import Boundary
from retainer.console.controls.plain import Choices, Whole
from retainer.console.editing.calls import new_of, patch_of
from retainer.console.editing.fields import choose_fields
from retainer.console.editing.filters import Filters
from retainer.console.editing.form_pages import FormPage, Section
from retainer.console.names import Link, Names
from retainer.console.page_context import PageContext, Reply
from retainer.events import deliveries, webhooks
from retainer.events.catalogue import RESOURCES, TYPES
from retainer.events.deliveries import DeliveryFilter, Redelivery, WebhookDelivery
from retainer.events.webhooks import Webhook
from retainer.identity.audit import Fields
from retainer.identity.plans import find_excess
from retainer.kernel.paging import Page, listing
from retainer.kernel.resource import AllowedNetworks, BaseUrl
from retainer.schema import webhooks as schema
from retainer.store.announcements import DELETED
from retainer.store.outbox import resource_of
from retainer.store.tx import Tx
from retainer.values.parameters import read_whole

WEBHOOKS = Section(
    "Webhooks",
    "/webhooks",
    schema.webhooks,
    lambda tx, webhook_id: tx.get(schema.webhooks, webhook_id, Webhook),
    lambda _, webhook: webhook.description or words.host(webhook.url),
)
URL, DESCRIPTION = choose_fields(Webhook, schema.webhooks, "url", "description")
ALL = "If none is selected, all events are sent."
FIELDS = (
    URL._replace(label="Address", hint="Events are sent to it with POST. Use https."),
    DESCRIPTION._replace(is_required=True, hint="What receives the events, such as Accounting."),
    Field("types", "Events", Choices(tuple((each, each) for each in TYPES)), ALL),
)
SINCE = Field("since", "From", Boundary(), "Resends all events since this day, with their ids.", is_required=True)
ROTATING = (
    "You get a new secret. For 24 hours, requests are also signed with the former one, until your receiver switches."
)


def create(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    address, allowed = BaseUrl(context.request.base_url), AllowedNetworks(context.request.settings.monitor_allow)
    made = webhooks.create_webhook(tx, address, allowed, new_of(tx, Webhook, body))
    return context.show_once(f"/webhooks/{made.data.id}", "webhook", made.meta.secret)


def change(tx: Tx, context: PageContext, webhook: Webhook, body: Fields, notice: str) -> Reply:
    """Change a webhook; no selected type means all. Raises `validation_failed`."""
    changes = patch_of(tx, Webhook, {name: value or None for name, value in body.items()})
    webhooks.update_webhook(tx, webhook.id, AllowedNetworks(context.request.settings.monitor_allow), changes)
    return context.redirect(f"/webhooks/{webhook.id}", notice)


def rotate(tx: Tx, context: PageContext, webhook: Webhook, _: Fields) -> Reply:
    made = webhooks.rotate_webhook_secret(tx, webhook.id)
    return context.show_once(f"/webhooks/{webhook.id}", "webhook", made.meta.secret)


def tell_deletion(_: Tx, __: PageContext, webhook: Webhook) -> list[str]:
    pending = words.count(webhook.pending_count, "pending delivery", "pending deliveries")
    return [
        f"Nothing more is sent to {webhook.url}, and the log of its deliveries is deleted.",
        *([f"{pending} will not be sent."] if webhook.pending_count else []),
        "This can't be undone. To stop it for a while, pause it.",
    ]


def delete(tx: Tx, context: PageContext, webhook: Webhook, _: Fields) -> Reply:
    webhooks.delete_webhook(tx, webhook.id)
    return context.redirect("/webhooks", "Webhook deleted. Nothing more is sent to it.", kind="warn")


def redeliver(tx: Tx, context: PageContext, webhook: Webhook, body: Fields) -> Reply:
    """Send an event again, or all since a day. Raises `locked`, `validation_failed`."""
    redelivery = new_of(tx, Redelivery, body)
    tx.raise_errors()
    events = words.count(deliveries.redeliver(tx, webhook, redelivery), "event")
    notice = f"Queued {events} to be sent again. Events keep their ids, so that receivers know them."
    return context.redirect(f"/webhooks/{webhook.id}", notice)


def send_test(tx: Tx, context: PageContext) -> Reply:
    webhook = WEBHOOKS.find(tx, context)
    deliveries.queue_test(tx, webhook)
    return context.redirect(f"/webhooks/{webhook.id}", "Test queued. Reload this page in a moment to see its result.")


def set_status(status: str, notice: str, tx: Tx, context: PageContext) -> Reply:
    return change(tx, context, WEBHOOKS.find(tx, context), {"status": status}, notice)


pause = partial(set_status, "paused", "Paused. Events wait until you resume it.")
resume = partial(set_status, "active", "Resumed. What is pending is sent now.")
save = partial(change, notice="Saved. Changes apply from the next event.")
NEW = FormPage(WEBHOOKS, "Create webhook", "Create webhook", create, fields=lambda *_: FIELDS, reads_on=True)
EDIT = NEW._replace(title="Edit {name}", button="Save", act=save, values=lambda _, __, webhook: webhook)
ROTATE = FormPage(WEBHOOKS, "Rotate the secret of {name}", "Rotate secret", rotate, lambda *_: [ROTATING])
DELETE = FormPage(WEBHOOKS, "Delete {name}", "Delete webhook", delete, tell_deletion, is_danger=True)
REDELIVER = FormPage(
    *(WEBHOOKS, "Send events of {name} again", "Send again", redeliver),
    fields=lambda _, context, __: [Field("event_id", "Event", Whole())] if "event_id" in context.form else [SINCE],
    reads_on=True,
)


PAGE = 25
TABLES = {resource_of(resource.table): resource.table for resource in RESOURCES if resource.table is not None}
"""The tables of records by the names of their types in events."""


def show_list(tx: Tx, context: PageContext) -> Reply:
    found, has_room = webhooks.load_webhooks(tx), find_excess(tx, "webhooks") is None
    return context.render("webhooks", webhooks=found, has_room=has_room, types_in_words=types_in_words)


def show(tx: Tx, context: PageContext) -> Reply:
    webhook = WEBHOOKS.find(tx, context)
    filters = Filters(tx, context, DeliveryFilter)
    number = read_whole(context.query.text("page")) or 1
    page = Page(max(1, min(number, 1_000_000)), PAGE, ("-id",), "", "")
    found = listing(tx, schema.webhook_deliveries, WebhookDelivery, filters.read(), page, webhook_id=webhook.id)
    return context.render(
        "webhook",
        webhook=webhook,
        deliveries=found.data,
        filters=filters,
        older=context.link(page=page.number + 1) if page.number < found.meta.last_page else "",
        records=links_of(tx, context, found.data),
        types_in_words=types_in_words,
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
    if webhook.types is not None:
        return webhook.types[0] if len(webhook.types) == 1 else words.count(len(webhook.types), "type")
    return "All events" if webhook.scopes == webhooks.READ_SCOPES else "All events that its key may read"
