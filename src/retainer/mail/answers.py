"""Mail to the people of an account when a client has answered a quote on the page of its link."""

from sqlalchemy import select

from retainer.billing.quotes.types import Quote
from retainer.documents.wording import money_text
from retainer.identity.audit import Fields
from retainer.identity.people.users import IS_ADMIN, get_user
from retainer.kernel.roles import ROLES
from retainer.mail.people import queue_for
from retainer.mail.queue import find_obstacle
from retainer.schema.crm import clients
from retainer.schema.identity import users
from retainer.schema.links import client_links
from retainer.store.tx import Tx

PAGE = "/console/records/quotes/{}"
MAX_ADMINS = 5
ADMINS = select(users.c.id).where(IS_ADMIN).order_by(users.c.id).limit(MAX_ADMINS)
SUBJECT = "{client} has {answer} quote {number}"
ANSWER = """Hello {name},

{client} has {answer} quote {quote}.

{facts}

{page}
"""


def tell_of_answer(tx: Tx, quote: Quote, by: str, link_id: int, site: str) -> None:
    """Queue a message about the answer to a quote, for the user who created its link.

    Without a user who may open quotes, the first MAX_ADMINS admins get it. If no mail can be sent, nothing is queued,
    and the answer still counts. `site` is the public address of the server.
    """
    facts = [f"By: {by}", f"Total: {money_text(quote.total, quote.currency, 'en')}"]
    if quote.status == "declined" and quote.decline_reason:
        facts.append(f"Reason: {quote.decline_reason}")
    client, name = str(tx.field(clients.c.name, quote.client_id)), ", ".join(filter(None, (quote.number, quote.title)))
    for user in _recipients(tx, link_id):
        if find_obstacle(tx, user["email"]) is None:
            queue_for(
                tx,
                user,
                "quote_answer",
                SUBJECT,
                ANSWER,
                client=client,
                answer=quote.status,
                number=quote.number or "",
                quote=name,
                facts="\n".join(facts),
                page=site + PAGE.format(quote.id),
            )


def _recipients(tx: Tx, link_id: int) -> list[Fields]:
    sender_id = tx.field(client_links.c.user_id, link_id)
    sender = None if sender_id is None else get_user(tx, sender_id)
    if sender and sender["is_active"] and "records" in ROLES[sender["role"]]:
        return [sender]
    return [get_user(tx, user_id) for (user_id,) in tx.all(ADMINS)]
