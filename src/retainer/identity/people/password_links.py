"""Password links: an admin or an operator creates one, and hands it to the user, who sets a password with it."""

from retainer.errors import Refusal, invalid
from retainer.identity import audit
from retainer.identity.actors import find_state
from retainer.identity.audit import Target
from retainer.identity.people.tokens import LINKS, Token
from retainer.store.tx import Tx


def create(tx: Tx, user_id: int) -> Token:
    """Create a link for an active user, and void the former one. Raises `not_found` or `validation_failed`."""
    user = find_state(tx, user_id)
    if user is None:
        raise Refusal("not_found", f"There is no user {user_id}.")
    if not user.is_active:
        raise invalid({"user": [f"{user.name} is deactivated. Activate the user first."]})
    LINKS.void_all_of(tx, user_id)
    link = LINKS.create(tx, user_id)
    audit.note(tx, "link created", Target("user", user_id, user.name), after={"expires_at": link.expires_at})
    return link
