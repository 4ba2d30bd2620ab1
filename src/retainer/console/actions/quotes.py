"""Actions on a quote: accept or decline it for its client."""

from typing import Literal

from retainer.billing.quotes.quotes import TRANSITIONS, load_quote
from retainer.billing.quotes.types import Quote
from retainer.console.actions import effects
from retainer.console.actions.basis import ActionPage, Consequences, check_state, errors_of, filled, note, patch_of
from retainer.console.page_context import PageContext, Reply
from retainer.console.words import money, short_day
from retainer.identity.audit import Action, Target
from retainer.kernel.resource import read_id
from retainer.schema.billing import quotes
from retainer.store.tx import Tx

Answered = Literal["accepted", "declined"]


def quote_of(tx: Tx, context: PageContext) -> Quote:
    return load_quote(tx, read_id(context.path_parameters["quote"], quotes))


def obstacle_to(status: Answered, quote: Quote) -> str:
    """Return why a quote cannot be accepted or declined; empty if it can."""
    if quote.status == "expired":
        return (
            f"It expired after {short_day(quote.valid_until)}. To offer it again, edit it and set its status to Draft."
        )
    if status not in TRANSITIONS[quote.status]:
        return f"It is {quote.status} already."
    return "It has no lines. Edit it and add one first." if status == "accepted" and not quote.lines else ""


def show_accept(tx: Tx, context: PageContext) -> Reply:
    """Show what accepting a quote makes possible."""
    quote = quote_of(tx, context)
    page = ActionPage("quote_accept", quotes, "Accept quote", obstacle_to("accepted", quote))
    client = effects.client_name(tx, quote.client_id)
    sentences = [
        f"{client} has ordered work for {money(quote.total, quote.currency)}.",
        "Its lines are then fixed. The quote can become a project, an invoice, or both.",
        "Nothing is billed yet.",
    ]
    changes = [effects.status_change(quote.status, "accepted")]
    return page.render(quote, Consequences(sentences, changes), title=f"Accept {quote.number}?")


def show_decline(tx: Tx, context: PageContext) -> Reply:
    """Show what declining a quote means."""
    quote = quote_of(tx, context)
    page = ActionPage("quote_decline", quotes, "Decline quote", obstacle_to("declined", quote), is_danger=True)
    client = effects.client_name(tx, quote.client_id)
    sentences = [
        f"{client} does not order this work for {money(quote.total, quote.currency)}.",
        "To offer it again, edit it and set its status to Draft.",
    ]
    changes = [effects.status_change(quote.status, "declined")]
    return page.render(quote, Consequences(sentences, changes), title=f"Decline {quote.number}?")


def accept(tx: Tx, context: PageContext) -> Reply:
    """Accept a quote. Raises `not_found`, `precondition_failed`, and the errors of the API."""
    quote = answer(tx, context, "accepted", "quote accepted", "accepted_by")
    return context.redirect(f"/records/quotes/{quote.id}", f"{quote.number} accepted.")


def decline(tx: Tx, context: PageContext) -> Reply:
    """Decline a quote. Raises like `accept`."""
    quote = answer(tx, context, "declined", "quote declined", "decline_reason")
    return context.redirect(f"/records/quotes/{quote.id}", f"{quote.number} declined.", kind="warn")


def answer(tx: Tx, context: PageContext, status: Answered, action: Action, field: str) -> Quote:
    """Set the status of a quote and the field that goes with it; return the quote."""
    before = quote_of(tx, context)
    check_state(quotes, before, context.form)
    fields: dict[str, object] = {"status": status, **filled(context.form, field)}
    with errors_of(tx, {field: field}):
        update = context.catalogue.operation("PATCH", "/quotes/{quote_id}").handler
        after: Quote = update(tx, before.id, patch_of(tx, Quote, fields)).data
    target = Target("quote", after.id, after.number)
    note(tx, action, target, {"status": before.status}, fields)
    return after
