"""Actions on a quote: record that its client accepted or declined it, and make it a draft again."""

from collections.abc import Iterator, Sequence

from retainer.billing.quotes.quotes import TRANSITIONS, is_in_use
from retainer.billing.quotes.types import Quote
from retainer.console.actions.action import Action, Seen
from retainer.console.editing.fields import Field, choose_fields
from retainer.schema.billing import quotes

ACCEPTED_BY = choose_fields(Quote, quotes, "accepted_by", use="Update")
DECLINE_REASON = choose_fields(Quote, quotes, "decline_reason", use="Update")


class QuoteAction(Action[Quote]):
    """A step of a quote to another status."""

    operation = ("PATCH", "/quotes/{quote_id}")
    instead = "To offer it again, set it back to draft."

    def is_offered(self, record: Quote) -> bool:
        return self.fixed["status"] in TRANSITIONS[record.status]


class Accept(QuoteAction):
    """Record that the client accepted the quote."""

    path, label, title, button = "accept", "Mark as accepted…", "Mark {name} as accepted?", "Mark as accepted"
    fixed = {"status": "accepted"}
    audited = "quote accepted"

    def is_next(self, record: Quote) -> bool:
        return record.status == "sent"

    def fields(self, record: Quote) -> Sequence[Field]:  # noqa: ARG002
        return [ACCEPTED_BY[0]._replace(hint="The person at the client, if you know.")]

    def sentences(self, seen: Seen[Quote]) -> Iterator[str]:
        yield f"Records that {seen.client} accepted this quote."
        yield "Its lines are then fixed. It can become a project, an invoice, or both. Nothing is billed yet."

    def notice(self, seen: Seen[Quote]) -> str:
        return f"{seen.after.number} accepted. Create its invoice or project next."


class Decline(QuoteAction):
    """Record that the client declined the quote."""

    path, label, title, button = "decline", "Mark as declined…", "Mark {name} as declined?", "Mark as declined"
    fixed = {"status": "declined"}
    audited = "quote declined"
    is_danger = True

    def fields(self, record: Quote) -> Sequence[Field]:  # noqa: ARG002
        return [DECLINE_REASON[0]._replace(hint="Why the client declined, for your own use.")]

    def sentences(self, seen: Seen[Quote]) -> Iterator[str]:
        yield f"Records that {seen.client} declined. To offer it again, set it back to draft."

    def notice(self, seen: Seen[Quote]) -> str:
        return f"{seen.after.number} declined."


class BackToDraft(QuoteAction):
    """Make a quote a draft again, to change and offer it anew."""

    path, label, title, button = "draft", "Back to draft…", "Set {name} back to draft?", "Back to draft"
    fixed = {"status": "draft"}
    instead = ""

    def is_offered(self, record: Quote) -> bool:
        return super().is_offered(record) and not is_in_use(record)

    def is_next(self, record: Quote) -> bool:
        return record.status == "expired"

    def sentences(self, seen: Seen[Quote]) -> Iterator[str]:  # noqa: ARG002
        yield "Its lines and dates can change again. Send it again to offer it."

    def notice(self, seen: Seen[Quote]) -> str:
        return f"{seen.after.number} is a draft again."
