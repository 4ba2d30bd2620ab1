"""The pages that create and edit a webhook, rotate its secret, and show a secret once."""

from typing import Annotated

import msgspec
from msgspec import Meta

from retainer.console import forms
from retainer.console.cookies import Cookie
from retainer.console.page_context import ROOT, PageContext, Reply
from retainer.console.pages.webhook_pages import webhook_of
from retainer.events import webhooks
from retainer.events.catalogue import ANNOUNCED, EventType
from retainer.events.webhooks import Webhook, WebhookUrl
from retainer.store.tx import Tx
from retainer.values.kinds import Text191


class WebhookFields(msgspec.Struct):
    """The fields of the form; no selected type means all."""

    url: WebhookUrl
    description: Text191 | None = None
    types: Annotated[list[EventType], Meta(min_length=1)] | None = None


def show_new(tx: Tx, context: PageContext) -> Reply:  # noqa: ARG001  # every page has a transaction
    return _form(context, None)


def create(tx: Tx, context: PageContext) -> Reply:
    """Create a webhook, and redirect to the page that shows its secret. Raises `validation_failed`."""
    webhook = forms.read_new(Webhook, context.form, types=context.form.texts_of("types") or None)
    made, secret = webhooks.add_webhook(tx, webhook, context.request.base_url, context.request.settings.monitor_allow)
    return _show_once(context, made, secret)


def show_edit(tx: Tx, context: PageContext) -> Reply:
    return _form(context, webhook_of(tx, context))


def edit(tx: Tx, context: PageContext) -> Reply:
    """Change a webhook. Raises `not_found`, `validation_failed`."""
    before = webhook_of(tx, context)
    fields = forms.read_new(WebhookFields, context.form, types=context.form.texts_of("types") or None)
    after = msgspec.structs.replace(before, **msgspec.structs.asdict(fields))
    webhooks.change_webhook(tx, before, after, context.request.settings.monitor_allow)
    return context.redirect(f"/webhooks/{before.id}", "Saved. Changes apply from the next event.")


def show_rotate(tx: Tx, context: PageContext) -> Reply:
    return context.render("webhook_rotate", webhook=webhook_of(tx, context))


def rotate(tx: Tx, context: PageContext) -> Reply:
    """Replace the secret, and show the new one. Raises `not_found`."""
    webhook = webhook_of(tx, context)
    return _show_once(context, webhook, webhooks.rotate_secret(tx, webhook))


def show_secret(tx: Tx, context: PageContext) -> Reply:
    webhook = webhook_of(tx, context)
    secret = Cookie("webhook-secret", path=f"{ROOT}/webhooks/{webhook.id}/secret")
    value = context.cookies.get(secret.name, secret.path)
    return context.render("webhook_secret", uses_up=secret, webhook=webhook, value=value)


def _show_once(context: PageContext, webhook: Webhook, secret: str) -> Reply:
    return context.set_one_time_cookie("webhook-secret", f"/webhooks/{webhook.id}/secret", secret)


def _form(context: PageContext, webhook: Webhook | None) -> Reply:
    is_typed = bool(context.form.texts)
    chosen = context.form.texts_of("types") if is_typed or webhook is None else webhook.types or []
    groups = {each.name.replace("_", " ").capitalize(): each.types for each in ANNOUNCED.values()}
    return context.render("webhook_form", webhook=webhook, groups=groups, chosen=set(chosen))
