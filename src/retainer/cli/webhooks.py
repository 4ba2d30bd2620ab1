"""Commands on webhooks."""

from typing import Annotated

import msgspec
import typer

from retainer import settings
from retainer.cli.common import (
    Account,
    Json,
    Since,
    acting_for,
    acting_on,
    changes,
    comma_list,
    listed,
    say,
    site,
    whole,
)
from retainer.events import deliveries, webhooks
from retainer.events.deliveries import DeliveryFilter, Redelivery, WebhookDelivery
from retainer.events.webhooks import Webhook
from retainer.kernel.paging import MAX_PAGE_SIZE, Page, listing
from retainer.schema import webhooks as schema
from retainer.settings import BASE_PATH
from retainer.store.tx import Tx
from retainer.values.kinds import MAX_INTEGER

webhook_cli = typer.Typer(help="Create, list, change, test, rotate and delete webhooks.", no_args_is_help=True)

WebhookId = Annotated[int, typer.Argument(metavar="WEBHOOK", min=1, max=MAX_INTEGER, help="The webhook's id.")]
URL = typer.Option(help="The address to which events are sent, like https://example.com/hooks.")
DESCRIPTION = typer.Option(help="What receives the events.")
Types = Annotated[
    str | None,
    typer.Option(help="Types of events separated by commas, like invoice.paid,client.created; by default all."),
]
NewTypes = Annotated[str | None, typer.Option("--types", help="All types from now on, separated by commas; or all.")]
Status = Annotated[str | None, typer.Option(help="active or paused.")]
OfStatus = Annotated[str | None, typer.Option("--status", help="Only pending, delivered or failed deliveries.")]
EventId = Annotated[int | None, typer.Option("--event", min=1, max=MAX_INTEGER, help="Send this event again, by id.")]


@webhook_cli.command("create")
def create_webhook(
    account: Account,
    *,
    url: Annotated[str, URL],
    description: Annotated[str | None, DESCRIPTION] = None,
    types: Types = None,
    json: Json = False,
) -> None:
    """Create a webhook; its secret is shown only once."""
    webhook = whole(Webhook, locals() | {"types": comma_list(types)})
    with acting_for(account) as tx:
        made, secret = webhooks.add_webhook(tx, webhook, site() + BASE_PATH, settings.load().monitor_allow)
    say({"webhook_id": made.id, "secret": secret}, json=json)


@webhook_cli.command("list")
def list_webhooks(account: Account, *, json: Json = False) -> None:
    """List the webhooks of an account, without their secrets."""
    with acting_for(account, write=False) as tx:
        found = webhooks.load_webhooks(tx)
    names = ("id", "url", "description", "status", "status_reason", "pending_count", "last_delivered_at")
    say({"webhooks": listed(found, names, json=json)}, json=json)


@webhook_cli.command("set")
def set_webhook(
    webhook: WebhookId,
    *,
    url: Annotated[str | None, URL] = None,
    description: Annotated[str | None, DESCRIPTION] = None,
    types: NewTypes = None,
    status: Status = None,
    json: Json = False,
) -> None:
    """Change a webhook, pause it, or let it continue where it was."""
    chosen = {"types": "" if types == "all" else comma_list(types)}
    values = changes(Webhook, locals() | chosen)
    with acting_on(schema.webhooks, webhook) as tx:
        before = _get(tx, webhook)
        after = msgspec.structs.replace(before, **values)
        changed = webhooks.change_webhook(tx, before, after, settings.load().monitor_allow)
    say(msgspec.structs.asdict(changed), json=json)


@webhook_cli.command("rotate")
def rotate_secret(webhook: WebhookId, *, json: Json = False) -> None:
    """Replace the secret, which is shown only once; for 24 hours, the former one also signs."""
    with acting_on(schema.webhooks, webhook) as tx:
        secret = webhooks.rotate_secret(tx, _get(tx, webhook))
    say({"webhook_id": webhook, "secret": secret}, json=json)


@webhook_cli.command("test")
def send_test(webhook: WebhookId, *, json: Json = False) -> None:
    """Queue a test event; `retainer webhook deliveries` shows its result."""
    with acting_on(schema.webhooks, webhook) as tx:
        queued = deliveries.queue_test(tx, _get(tx, webhook))
    say(msgspec.structs.asdict(queued), json=json)


@webhook_cli.command("redeliver")
def redeliver(webhook: WebhookId, *, event: EventId = None, since: Since = None, json: Json = False) -> None:
    """Send an event again, or all since an instant."""
    wanted = whole(Redelivery, {"event_id": event, "since": since})
    with acting_on(schema.webhooks, webhook) as tx:
        count = deliveries.redeliver(tx, _get(tx, webhook), wanted)
        queued = _get(tx, webhook)
    result = {"webhook_id": webhook, "events": count, "position": queued.position, "pending": queued.pending_count}
    say(result, json=json)


@webhook_cli.command("deliveries")
def list_deliveries(webhook: WebhookId, *, status: OfStatus = None, json: Json = False) -> None:
    """List the newest deliveries of a webhook."""
    if status not in {None, *deliveries.STATUSES}:
        raise typer.BadParameter(f"--status must be one of: {', '.join(deliveries.STATUSES)}")
    with acting_on(schema.webhooks, webhook) as tx:
        filters = DeliveryFilter(status=None if status is None else (status,))
        page = Page(1, MAX_PAGE_SIZE, ("-id",), "", "")
        found = listing(tx, schema.webhook_deliveries, WebhookDelivery, filters, page, webhook_id=webhook).data
    names = ("event_id", "type", "record_id", "status", "attempts", "attempted_at", "next_attempt_at", "error")
    say({"deliveries": listed(found, names, json=json)}, json=json)


@webhook_cli.command("delete")
def delete_webhook(webhook: WebhookId, *, json: Json = False) -> None:
    """Delete a webhook and the log of its deliveries."""
    with acting_on(schema.webhooks, webhook) as tx:
        webhooks.remove_webhook(tx, _get(tx, webhook))
    say({"deleted": webhook}, json=json)


def _get(tx: Tx, webhook_id: int) -> Webhook:
    return tx.get(schema.webhooks, webhook_id, Webhook)
