"""How records relate: the broader follows from the narrower, and a status moves as its table allows."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import bindparam, select

from retainer.schema.identity import users
from retainer.store.tx import Tx
from retainer.values.kinds import LARGEST_POSITION, ME

ACTIVE = select(users.c.is_active).where(users.c.id == bindparam("id"))


Given = dict[str, str]
"""The members that have a say: each was `sent`, or has `followed` from one that was."""


def sent_fields(record: Any) -> Given:
    """The members that a new record's body says something with: null says nothing there."""
    return {name: "sent" for name in record.__struct_fields__ if getattr(record, name) is not None}


def concerns(before: Any, given: Given, *members: str) -> bool:
    """Whether a body says anything of these relations; what it does not speak of stays, whatever it led to."""
    return before is None or not given.keys().isdisjoint(members)


def named_fields(record: Any, given: Given, *members: str) -> list[str]:
    """Those of the relations that a body names; to be asked before anything follows from them."""
    return [member for member in members if member in given and getattr(record, member) is not None]


def first_named(named: list[str], *members: str) -> str:
    """The first of these members that was named; if none was, the first."""
    return next((member for member in members if member in named), members[0])


def derive_parent(tx: Tx, record: Any, given: Given, narrow: str, broad: str, implied: int | None) -> None:
    """Let the broader relation follow from the narrower; one that was given and differs is a fault on the narrower.

    Null that was sent beside a narrower one says nothing.
    """
    said = getattr(record, broad)
    if broad not in given or (said is None and given[broad] == given.get(narrow) == "sent"):
        setattr(record, broad, implied)
        given[broad] = "followed"
    elif said != implied:
        what = broad.removesuffix("_id")
        own, other = (f"{what} {its}" if its is not None else f"no {what}" for its in (implied, said))
        tx.error(narrow, f"Belongs to {own}, not to {other}. Send what agrees, or only the narrower of both.")


def check_open(tx: Tx, member: str, name: str, status: str | None, *, template: bool = False) -> None:
    """Note a fault when a client or project takes nothing new: it is archived, or a `template` that refuses this."""
    if status == "archived":
        tx.error(member, f"{name} is archived and takes nothing new. Make it active first.")
    if template:
        tx.error(member, f"{name} is a template and takes no time or money. Create a project from it first.")


def check_transition(
    tx: Tx, before: str | None, after: str, moves: Mapping[str, Collection[str]], advice: str = ""
) -> None:
    """Note `invalid_transition` when the table of moves does not lead from one status to the other."""
    if before is not None and after != before and after not in moves[before]:
        legal = f"It can become: {', '.join(moves[before])}." if moves[before] else f"It stays {before}."
        sentence = f"Cannot become {after} from {before}. {legal} {advice}".rstrip()
        tx.error("status", sentence, "invalid_transition")


def next_position(position: int) -> int:
    """The position behind another; at the end of what positions can say, the same."""
    return min(position + 1, LARGEST_POSITION)


def check_date_order(tx: Tx, record: Any) -> None:
    """Note a fault when due_date is before start_date."""
    if record.start_date and record.due_date and record.due_date < record.start_date:
        tx.error("due_date", f"Must not be before start_date, which is {record.start_date}.")


def resolve_user(tx: Tx, record: Any, member: str, before: int | None) -> None:
    """Put the key's user in for `me`; another user than before must be an active one."""
    if getattr(record, member) == ME:
        setattr(record, member, tx.actor.user_id)
    chosen = getattr(record, member)
    if chosen not in {None, before, tx.actor.user_id} and tx.value(ACTIVE, id=chosen) == 0:
        tx.error(member, f"User {chosen} is deactivated. Choose an active user.")
