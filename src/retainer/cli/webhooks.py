"""Commands on webhooks."""

from typing import Annotated, Any

import msgspec
import typer

from retainer import settings
from retainer.cli import common as cli
from retainer.events import deliveries, webhooks
from retainer.events.deliveries import DeliveryFilter, Redelivery, WebhookDelivery
from retainer.events.webhooks import Webhook
from retainer.kernel.paging import MAX_PAGE_SIZE, Page, listing
from retainer.schema import webhooks as schema
from retainer.settings import BASE_PATH
from retainer.store.tx import Tx

webhook_cli = cli.group("webhook", "Create, list, change, test, rotate and delete webhooks.")

WebhookId = Annotated[int, cli.id_argument("WEBHOOK", "The webhook's id.")]
FIELDS = ("url", "description", "types")
OfStatus = Annotated[str | None, typer.Option("--status", help="Only pending, delivered or failed deliveries.")]
COLUMNS = ("id", "url", "description", "status", "status_reason", "pending_count", "last_delivered_at")
OF_DELIVERIES = ("event_id", "type", "record_id", "status", "attempts", "attempted_at", "next_attempt_at", "error")


@cli.command(webhook_cli, "create", cli.fields_of(Webhook, *FIELDS))
def create_webhook(account: cli.Account, **given: Any) -> dict[str, object]:
    """Create a webhook; its secret is shown only once."""
    webhook = cli.whole(Webhook, given)
    with cli.acting_for(account) as tx:
        made, secret = webhooks.add_webhook(tx, webhook, cli.site() + BASE_PATH, settings.load().monitor_allow)
    return {"webhook_id": made.id, "secret": secret}


@cli.command(webhook_cli, "list")
def list_webhooks(account: cli.Account) -> dict[str, object]:
    """List the webhooks of an account, without their secrets."""
    with cli.acting_for(account, write=False) as tx:
        return {"webhooks": cli.Listing(webhooks.load_webhooks(tx), COLUMNS)}


@cli.command(webhook_cli, "set", cli.fields_of(Webhook, *FIELDS, "status", is_new=False))
def set_webhook(webhook: WebhookId, **given: Any) -> Webhook:
    """Change a webhook, pause it, or let it continue where it was. `--types all` sends every type again."""
    values = cli.changes(Webhook, given | ({"types": ""} if given["types"] == "all" else {}))
    with cli.acting_on(schema.webhooks, webhook) as tx:
        before = _get(tx, webhook)
        after = msgspec.structs.replace(before, **values)
        return webhooks.change_webhook(tx, before, after, settings.load().monitor_allow)


@cli.command(webhook_cli, "rotate")
def rotate_secret(webhook: WebhookId) -> dict[str, object]:
    """Replace the secret, which is shown only once; for 24 hours, the former one also signs."""
    with cli.acting_on(schema.webhooks, webhook) as tx:
        return {"webhook_id": webhook, "secret": webhooks.rotate_secret(tx, _get(tx, webhook))}


@cli.command(webhook_cli, "test")
def send_test(webhook: WebhookId) -> WebhookDelivery:
    """Queue a test event; `retainer webhook deliveries` shows its result."""
    with cli.acting_on(schema.webhooks, webhook) as tx:
        return deliveries.queue_test(tx, _get(tx, webhook))


@cli.command(webhook_cli, "redeliver", cli.fields_of(Redelivery))
def redeliver(webhook: WebhookId, **given: Any) -> dict[str, object]:
    """Send an event again, or all since an instant."""
    with cli.acting_on(schema.webhooks, webhook) as tx:
        count = deliveries.redeliver(tx, _get(tx, webhook), cli.whole(Redelivery, given))
        queued = _get(tx, webhook)
    return {"webhook_id": webhook, "events": count, "position": queued.position, "pending": queued.pending_count}


@cli.command(webhook_cli, "deliveries")
def list_deliveries(webhook: WebhookId, *, status: OfStatus = None) -> dict[str, object]:
    """List the newest deliveries of a webhook."""
    if status not in {None, *deliveries.STATUSES}:
        raise typer.BadParameter(f"Must be one of: {', '.join(deliveries.STATUSES)}.", param_hint="--status")
    with cli.acting_on(schema.webhooks, webhook) as tx:
        filters = DeliveryFilter(status=None if status is None else (status,))
        page = Page(1, MAX_PAGE_SIZE, ("-id",), "", "")
        found = listing(tx, schema.webhook_deliveries, WebhookDelivery, filters, page, webhook_id=webhook).data
    return {"deliveries": cli.Listing(found, OF_DELIVERIES)}


@cli.command(webhook_cli, "delete")
def delete_webhook(webhook: WebhookId) -> dict[str, object]:
    """Delete a webhook and the log of its deliveries."""
    with cli.acting_on(schema.webhooks, webhook) as tx:
        webhooks.remove_webhook(tx, _get(tx, webhook))
    return {"deleted": webhook}


def _get(tx: Tx, webhook_id: int) -> Webhook:
    return tx.get(schema.webhooks, webhook_id, Webhook)
