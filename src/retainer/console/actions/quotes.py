"""Actions on quotes: send, accept with the optional lines that the client chose, decline, and set back to draft."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from retainer.billing.quotes import quotes
from retainer.billing.quotes.types import Quote, QuoteLine
from retainer.console.actions.action import Action, become
from retainer.console.catalogue import shortened
from retainer.console.controls.control import Field
from retainer.console.controls.plain import Choices
from retainer.console.editing.fields import choose_fields
from retainer.console.words import money
from retainer.errors import FieldErrors
from retainer.schema import billing

ACCEPTED_BY, DECLINE_REASON = choose_fields(Quote, billing.quotes, "accepted_by", "decline_reason", use="Update")


class Accept(Action, frozen=True, kw_only=True):
    def fields_of(self, record: Quote) -> Sequence[Field]:
        options = [(str(line.id), option_text(line)) for line in record.lines if line.is_optional]
        chosen = Field("accepted_line_ids", "Optional lines that the client accepts", Choices(tuple(options)))
        return [*([chosen] if options else []), ACCEPTED_BY._replace(hint="The person at the client, if you know.")]

    def build_body(self, record: Quote, values: dict[str, Any], errors: FieldErrors) -> dict[str, Any]:
        chosen = values.get("accepted_line_ids")
        ids = {"accepted_line_ids": [*map(int, chosen)]} if isinstance(chosen, list) and chosen else {}
        return super().build_body(record, values, errors) | ids


def option_text(line: QuoteLine) -> str:
    name, *_ = line.description.splitlines()
    return f"{shortened(name)}, {money(line.amount, line.currency)} before tax"


quote_becomes = partial(become, quotes.TRANSITIONS)
QUOTE_ACTIONS = (
    quote_becomes(
        "sent",
        path="send",
        label="Mark as sent…",
        needs="lines",
        next_in=("draft",),
        sentences=("Its lines are then fixed.", "Nobody gets a message. {advice}"),
        notice=("{after.number} is sent. Download its PDF.",),
    ),
    quote_becomes(
        "accepted",
        of=Accept,
        path="accept",
        label="Mark as accepted…",
        needs="lines",
        next_in=("sent",),
        sentences=(
            "Records that {client} accepted this quote.",
            "Its lines are then fixed. It can become a project, an invoice, or both. Nothing is billed yet.",
        ),
        notice=("{after.number} accepted. Create its invoice or project next.",),
        audited="quote accepted",
    ),
    quote_becomes(
        "declined",
        path="decline",
        label="Mark as declined…",
        fields=(DECLINE_REASON._replace(hint="Why the client declined, for your own use."),),
        sentences=("Records that {client} declined. To offer it again, set it back to draft.",),
        notice=("{after.number} declined.",),
        audited="quote declined",
        is_danger=True,
    ),
    Action(
        path="draft",
        label="Back to draft…",
        fixed={"status": "draft"},
        when=lambda quote: "draft" in quotes.TRANSITIONS[quote.status] and not quotes.is_in_use(quote),
        next_in=("expired",),
        sentences=("Its lines and dates can change again. Send it again to offer it.",),
        notice=("{after.number} is a draft again.",),
    ),
)
