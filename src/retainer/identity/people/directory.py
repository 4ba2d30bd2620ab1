"""Users: the people of the account, to whom tasks, tickets and time belong.

Any valid key can read them, so that an integration finds the id for `assignee_id`, `manager_id` or `user_id`. Users are
created and changed by admins in the console, or by the operator. A deactivated user keeps its records, but accepts no
new ones.
"""

from typing import Annotated

from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.kernel.roles import Role, may
from retainer.schema.identity import users
from retainer.store.row_mapper import Derived
from retainer.store.tx import Tx
from retainer.values.kinds import Email, Text191
from retainer.values.records import READ_ONLY, Record


class User(Record):
    """A person of the account."""

    name: Annotated[Text191, "Lists are sorted by it; `q` searches it."] = READ_ONLY
    email: Annotated[Email | None, Derived(lambda table: table.c.email), "Only for keys of admins, else null."] = (
        READ_ONLY
    )
    role: Role = READ_ONLY
    is_active: Annotated[bool, "False once an admin has deactivated the user; the user's keys then stop."] = READ_ONLY


class UserFilter(Filter):
    sorts = ("name", "role", "created_at", "updated_at")
    role: OneOf[Role] | None = None
    is_active: bool | None = None


def shown_to(tx: Tx, user: User) -> User:
    """Return a user with the fields that the caller may see."""
    if not may(tx.actor, "people"):
        user.email = None
    return user


api = Resource("/users", tag="Users", scope=None, table=users, visible_to=shown_to)
api.lists(User, UserFilter, "List the users of the account, by name. Any valid key can call it.")
api.reads("/{user_id}", User, "Read a user. Any valid key can call it.")
