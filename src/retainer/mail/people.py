"""Mail to the people of an account: invitations, links to set a password, and notices about their second factor.

A message of a link says `{link}` until it is sent: the link is made by each attempt to send it, so that only its hash
is ever stored.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Literal

from msgspec.structs import replace
from sqlalchemy import bindparam, func, select

from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.identity.audit import Target
from retainer.identity.people.sessions import LINKS, Token
from retainer.identity.people.users import get_user, has_password
from retainer.identity.placeholders import PLACEHOLDER
from retainer.identity.sign_in.sign_in import find_users
from retainer.mail.messages import UserKind
from retainer.mail.queue import Letter, Recipients, find_obstacle, queue
from retainer.schema.columns import in_literals
from retainer.schema.identity import users
from retainer.schema.mail import messages
from retainer.store.engines.sql import INSTANT
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after

LinkKind = Literal["invitation", "password_link"]
VALID: dict[str, timedelta] = {"invitation": LINKS.valid, "password_link": timedelta(hours=1)}
"""How long the link of each kind of message works, from when it is sent."""
MAX_LINKS, MAX_NOTICES = 5, 20
"""Messages of a kind that a person gets in a day: strangers can ask for links, too."""
TOO_MANY = "{} has got {} links by mail since yesterday. Create one that you send yourself."
INVITATION = """Hello {name},

You can now use Retainer for {account}. This link lets you choose a password, within {days} days:

{link}

It works once. If you did not expect this message, ignore it, and nothing happens.
"""
RESET = """Hello {name},

This link lets you set a new password at {account}, within an hour. It works once:

{link}

{origin} If you did not ask for it, ignore this message, and your password stays as it is.
"""
ORIGIN = "Somebody asked for it on the page to sign in."
NOTICE = """Hello {name},

{what} at {account}. If you did not expect this, ask an admin of {account} at once, and change your password.
"""
SUBJECTS: dict[LinkKind, str] = {
    "invitation": "Your access to {account}",
    "password_link": "Link to set a new password at {account}",
}
SENT = (
    select(func.count())
    .select_from(messages)
    .where(in_literals(messages.c.record, ["user"]), messages.c.record_id == bindparam("user"))
    .where(messages.c.kind == bindparam("kind"), messages.c.created_at > bindparam("since", type_=INSTANT))
)


def send_link(tx: Tx, user_id: int) -> str:
    """Queue a link to set a password for an active user, or an invitation if there is none yet; return the address.

    Raises `validation_failed` for a user who is not active, what mail servers do not take, and too many in a day.
    """
    user, kind = get_user(tx, user_id), kind_of_link(tx, user_id)
    if not user["is_active"]:
        raise invalid({"by_mail": [f"{user['name']} is deactivated. Activate the user first."]})
    if obstacle := find_obstacle(tx, user["email"]):
        raise invalid({"by_mail": [obstacle]})
    if _count_sent(tx, user_id, kind) >= MAX_LINKS:
        raise invalid({"by_mail": [TOO_MANY.format(user["name"], MAX_LINKS)]})
    sender = tx.field(users.c.name, tx.actor.user_id) if tx.actor.user_id else None
    origin = ORIGIN if sender is None else f"{sender} has sent it to you."
    text = INVITATION if kind == "invitation" else RESET
    queue_for(tx, user, kind, SUBJECTS[kind], text, days=f"{LINKS.valid.days}", origin=origin)
    audit.note(tx, "link created", Target("user", user_id, user["name"]), after={"sent_to": user["email"]})
    return str(user["email"])


def kind_of_link(tx: Tx, user_id: int) -> LinkKind:
    return "password_link" if has_password(tx, user_id) else "invitation"


def ask_for_link(store: Store, folded_email: str) -> None:
    """Queue a link for each active user with an email, unless that has got too many or the account is suspended."""
    for person, _ in find_users(store, folded_email, None, None):
        if person.suspended_at is not None:
            continue
        stranger = replace(person, user_id=0, session_id=None)
        with suppress(Refusal), store.begin(stranger, write=True) as tx:
            send_link(tx, person.user_id)


def send_notice(tx: Tx, user_id: int, what: str, address: str | None = None) -> None:
    """Queue a notice of what became of a user's way to sign in, to the user's email or another address.

    Nothing is sent if that is impossible: it must stop nobody.
    """
    user, is_flooded = get_user(tx, user_id), _count_sent(tx, user_id, "security_notice") >= MAX_NOTICES
    user["email"] = address or user["email"]
    if not is_flooded and find_obstacle(tx, user["email"]) is None:
        queue_for(tx, user, "security_notice", "{what} at {account}", NOTICE, what=what)


def make_link(tx: Tx, user_id: int, address: str, kind: str) -> Token | None:
    """Make the link of a message that is being sent, in place of earlier ones.

    Return None if the user is not active, or has another email by now.
    """
    user = get_user(tx, user_id)
    if not user["is_active"] or user["email"] != address:
        return None
    LINKS.void_all_of(tx, user_id)
    return LINKS.create(tx, user_id, VALID[kind])


def _count_sent(tx: Tx, user_id: int, kind: UserKind) -> int:
    return int(tx.value(SENT, user=user_id, kind=kind, since=instant_after(tx.now, -timedelta(days=1))))


def queue_for(tx: Tx, user: audit.Fields, kind: UserKind, subject: str, text: str, **facts: str) -> None:
    """Queue a message to a user; `{account}`, `{name}` and the other facts are filled in."""
    user_id = user["id"]
    facts |= {"account": get_account(tx)["name"], "name": user["name"]}
    subject, text = (PLACEHOLDER.sub(lambda found: facts.get(found[1], found[0]), each) for each in (subject, text))
    reply_to = tx.field(users.c.email, tx.actor.user_id) if tx.actor.user_id not in {0, user_id} else None
    queue(tx, Letter(kind, "user", user_id, None, subject, text), Recipients([user["email"]], reply_to=reply_to))
