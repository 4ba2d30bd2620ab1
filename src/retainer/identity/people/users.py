"""Users: the people of the account, to whom tasks, tickets and time belong.

Any valid key can read them, so that an integration finds the id for `assignee_id`, `manager_id` or `user_id`. Users are
created and changed by admins in the console, or by the operator. A deactivated user keeps its records, but accepts no
new ones.
"""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated

import msgspec
from msgspec import Meta
from sqlalchemy import bindparam, delete, insert, literal_column, select

from retainer.errors import BodyErrors, NoSuchRecord, Refusal, invalid
from retainer.identity import audit
from retainer.identity.accounts import AccountDetails, account_values, in_units
from retainer.identity.actors import operator, select_operator
from retainer.identity.audit import Fields, Target
from retainer.identity.people import sessions
from retainer.identity.placeholders import settings_errors
from retainer.kernel.query import Filter, OneOf
from retainer.kernel.resource import Resource
from retainer.kernel.roles import Role, may
from retainer.schema.identity import accounts, users
from retainer.schema.work import cost_rates
from retainer.store.engines.base import Row
from retainer.store.engines.sql import DAY
from retainer.store.row_mapper import Derived, folds
from retainer.store.tables import ACCOUNT, TODAY
from retainer.store.tx import Store, Tx
from retainer.values.collation import folded_text
from retainer.values.common import Minutes
from retainer.values.exact import FIRST_DAY, amount_of, decimal_text, instant_after
from retainer.values.kinds import Day, Email, Money, Password, Percent, Text191, exact
from retainer.values.records import READ_ONLY, Record

TRIAL_DAYS = 90
WeeklyMinutes = Annotated[Minutes, Meta(ge=0, le=10080)]
MAX_COST_RATE = Decimal(10) ** 7  # so that the cost of a month's hours fits into the database's integers
CostRate = Annotated[
    Decimal, exact(Decimal(0), MAX_COST_RATE, 4, f"the cost of an hour, from 0 to {MAX_COST_RATE:f}", "45.00")
]


class UserDetails(msgspec.Struct):
    """The fields of a user that admins set; `cost_rate` applies from `cost_rate_from` on, by default to all days."""

    name: Text191
    email: Email
    role: Role = "member"
    weekly_capacity_minutes: WeeklyMinutes = 2400
    target_percent: Percent = Decimal(75)
    hourly_rate: Annotated[
        Money | None, "Used if neither the project nor the client has a rate. If blank: the account's."
    ] = None
    cost_rate: Annotated[CostRate | None, "Used in profitability reports."] = None
    cost_rate_from: Annotated[Day, "First day of the new cost. Needed if the cost changes."] = FIRST_DAY
    password: Password | None = None


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
    if not may(tx.actor, "people"):
        user.email = None
    return user


ADDING = "Admins add people in the console."
api = Resource("/users", tag="Users", scope=None, table=users, visible_to=shown_to, advice=ADDING)
api.lists(User, UserFilter, "List the users of the account, by name. Any valid key can call it.")
api.reads("/{user_id}", User, "Read a user. Any valid key can call it.")

ALL = select(users).order_by(users.c.id)
ONE = select(users).where(users.c.id == bindparam("id"))
IS_ADMIN = users.c.is_active & (users.c.role == literal_column("'admin'"))
OTHER_ADMIN = select(users.c.id).where(users.c.id != bindparam("id"), IS_ADMIN).limit(1)
EMAIL_TAKEN = select(users.c.id).where(users.c.email_folded == bindparam("email"), users.c.id != bindparam("except_id"))
_rate = (cost_rates.c.user_id == bindparam("user"), cost_rates.c.from_date == bindparam("day", type_=DAY))
COST_RATE = select(cost_rates.c.amount).where(*_rate)
COST_RATES = (
    select(cost_rates.c.from_date, cost_rates.c.amount)
    .where(cost_rates.c.user_id == bindparam("user"))
    .order_by(cost_rates.c.from_date)
)
CURRENT_COSTS = (
    select(cost_rates.c.user_id, cost_rates.c.amount)
    .where(cost_rates.c.from_date <= TODAY)
    .order_by(cost_rates.c.from_date)
)
NO_COST_RATE = delete(cost_rates).where(*_rate)
NEW_COST_RATE = insert(cost_rates).values(
    account_id=ACCOUNT, user_id=bindparam("user"), from_date=bindparam("day"), amount=bindparam("amount")
)
SECRET = {"password_hash", *folds(users)}


def open_account(
    store: Store,
    details: AccountDetails,
    admin: UserDetails,
    password_hash: str | None = None,
    *,
    at: str | None = None,
) -> tuple[int, int]:
    """Open an account with its first admin; return both ids. `at` is the time of opening: the demo's is past."""
    with store.unscoped(write=True) as unscoped:
        unscoped.now = at or unscoped.now
        trial_end = details.trial_ends_at or instant_after(unscoped.now, timedelta(days=TRIAL_DAYS))
        errors = BodyErrors()
        values = account_values(errors, msgspec.structs.asdict(details), details.currency)
        for name, message in settings_errors(values, {}):
            errors.error(name, message)
        errors.raise_errors()
        values |= {"api_enabled": False, "trial_ends_at": trial_end}
        values |= {"created_at": unscoped.now, "updated_at": unscoped.now}
        new_account = insert(accounts).values({name: bindparam(name) for name in values})
        account_id: int = unscoped.value(new_account.returning(accounts.c.id), **values)
        tx = store.within(unscoped, operator(unscoped.one(select_operator(accounts), id=account_id) or ()))
        audit.note(tx, "account opened", Target("account", account_id, details.name), after={"plan": details.plan})
        user_id = create_user(tx, admin, password_hash)
    return account_id, user_id


def create_user(tx: Tx, details: UserDetails, password_hash: str | None = None) -> int:
    """Create a user; return the id. Raises `validation_failed`."""
    fields = msgspec.structs.asdict(details)
    values = _user_values(tx, 0, fields) | {"is_active": True, "password_hash": password_hash}
    user_id = tx.insert_raw(users, values)
    tx.count(users, 1)
    _, cost_rate = _set_cost_rate(tx, user_id, fields)
    chosen = {name: value for name, value in get_user(tx, user_id).items() if name in fields}
    audit.note(tx, "user created", Target("user", user_id, details.name), after=chosen | cost_rate)
    return user_id


def invite(tx: Tx, details: UserDetails) -> tuple[int, sessions.Token]:
    """Create a user without a password; return the id and a password link. Raises `validation_failed`."""
    user_id = create_user(tx, details)
    return user_id, create_link(tx, user_id)


def create_link(tx: Tx, user_id: int) -> sessions.Token:
    """Create a password link for an active user, and void the former one. Raises `not_found`, `validation_failed`."""
    user = get_user(tx, user_id)
    if not user["is_active"]:
        raise invalid({"user": [f"{user['name']} is deactivated. Activate the user first."]})
    sessions.LINKS.void_all_of(tx, user_id)
    link = sessions.LINKS.create(tx, user_id)
    audit.note(tx, "link created", Target("user", user_id, user["name"]), after={"expires_at": link.expires_at})
    return link


def list_users(tx: Tx) -> list[Fields]:
    return [_fields_of(row, tx.actor.currency) for row in tx.all(ALL)]


def get_user(tx: Tx, user_id: int) -> Fields:
    row = tx.one(ONE, id=user_id)
    if row is None:
        raise NoSuchRecord("user", user_id)
    return _fields_of(row, tx.actor.currency)


def has_password(tx: Tx, user_id: int) -> bool:
    return tx.field(users.c.password_hash, user_id) is not None


def change_user(tx: Tx, user_id: int, changes: Fields) -> Fields:
    """Change a user and the cost rate; return the user. A password is passed as `password_hash`.

    Deactivation stops the user's keys immediately, and ends sessions; another role counts from the next request on.
    Another email voids the password link, and both addresses of an active user are told of it.
    Raises `not_found`, `validation_failed`, also if admins would end their own access, and `locked` for the last admin.
    """
    before = get_user(tx, user_id)
    if user_id == tx.actor.user_id:
        _require_own_access(changes)
    _require_another_admin(tx, before, changes)
    values = _user_values(tx, user_id, changes)
    password_hash = values.pop("password_hash", None)
    if values:
        tx.update_columns(users, user_id, values)
    former_rate, rate = _set_cost_rate(tx, user_id, changes)
    after = get_user(tx, user_id)
    target = Target("user", user_id, after["name"])
    if before["is_active"] != after["is_active"]:
        audit.note(tx, "user activated" if after["is_active"] else "user deactivated", target)
    changed = after | rate | {"is_active": before["is_active"]}
    audit.note_changes(tx, "user changed", target, before | former_rate, changed)
    if not after["is_active"]:
        sessions.end_all_of(tx, user_id)
        sessions.LINKS.void_all_of(tx, user_id)
    if before["email"].casefold() != after["email"].casefold():
        sessions.LINKS.void_all_of(tx, user_id)  # the former address may belong to another person
        if after["is_active"] and has_password(tx, user_id):
            for address in (before["email"], after["email"]):
                tx.store.tell_user(tx, user_id, "The email with which you sign in was changed", address)
    if password_hash is not None:
        set_password(tx, user_id, after["name"], password_hash)
    return after


def list_cost_rates(tx: Tx, user_id: int) -> list[tuple[str, str]]:
    """Return the cost rates of a user, oldest first: the first day, blank for all days before the next, and amount."""
    rows = tx.all(COST_RATES, user=user_id)
    return [("" if day == FIRST_DAY else day, str(amount_of(amount, tx.actor.currency))) for day, amount in rows]


def current_costs(tx: Tx) -> dict[int, str]:
    rows = tx.all(CURRENT_COSTS)
    return {user_id: str(amount_of(amount, tx.actor.currency)) for user_id, amount in rows}


def set_password(tx: Tx, user_id: int, name: str, password_hash: str) -> None:
    """Set the password of a user; all sessions except the current one end, and the link is void.

    A user who had one is told.
    """
    if has_password(tx, user_id):
        tx.store.tell_user(tx, user_id, "Your password was changed", None)
    tx.update_columns(users, user_id, {"password_hash": password_hash})
    sessions.end_all_of(tx, user_id)
    sessions.LINKS.void_all_of(tx, user_id)
    audit.note(tx, "password set", Target("user", user_id, name))


def _require_another_admin(tx: Tx, user: Fields, changes: Fields) -> None:
    was, stays = (bool(state["is_active"]) and state["role"] == "admin" for state in (user, {**user, **changes}))
    if was and not stays and tx.one(OTHER_ADMIN, id=user["id"]) is None:
        account = tx.actor.account_id
        message = (
            f"{user['name']} is the last active admin of account {account}, so nothing was changed. First add another, "
            f"with retainer user create {account} --role admin, or make one with retainer user set USER --role admin."
        )
        raise Refusal("locked", message)


def _require_own_access(changes: Fields) -> None:
    if changes.get("role", "admin") != "admin":
        raise invalid({"role": ["You can't change your own role. Ask another admin to do it."]})
    if not changes.get("is_active", True):
        raise invalid({"is_active": ["You can't deactivate yourself. Ask another admin to do it."]})


def _user_values(tx: Tx, user_id: int, fields: Fields) -> Fields:
    """Return the columns of the fields. Raises all errors."""
    values = in_units(tx, in_units(tx, fields, "cost_rate", tx.actor.currency), "hourly_rate", tx.actor.currency)
    for name in ("cost_rate", "cost_rate_from", "password"):
        values.pop(name, None)
    if "target_percent" in values:
        values["target_percent"] = decimal_text(values["target_percent"])
    values |= {name: folded_text(values, *how) for name, how in folds(users).items() if how[0][0] in values}
    if "email" in values and tx.one(EMAIL_TAKEN, email=values["email_folded"], except_id=user_id):
        tx.error("email", "Another user has this email. Choose a different one.")
    tx.raise_errors()
    return values


def _set_cost_rate(tx: Tx, user_id: int, fields: Fields) -> tuple[Fields, Fields]:
    """Set the cost rate, if it is among the fields; return it before and after, named with its day."""
    if fields.get("cost_rate") is None:
        return {}, {}
    currency, day = tx.actor.currency, fields.get("cost_rate_from", FIRST_DAY)
    amount = in_units(tx, fields, "cost_rate", currency)["cost_rate"]
    former = tx.value(COST_RATE, user=user_id, day=day)
    tx.run(NO_COST_RATE, user=user_id, day=day)
    tx.run(NEW_COST_RATE, user=user_id, day=day, amount=amount)
    name = "cost_rate" if day == FIRST_DAY else f"cost_rate_from_{day}"
    return (
        {name: None if former is None else str(amount_of(former, currency))},
        {name: str(amount_of(amount, currency))},
    )


def _fields_of(row: Row, currency: str) -> Fields:
    fields = dict(zip(users.c.keys(), row, strict=True))
    fields["is_active"] = bool(fields["is_active"])
    if fields["hourly_rate"] is not None:
        fields["hourly_rate"] = str(amount_of(fields["hourly_rate"], currency))
    return {name: value for name, value in fields.items() if name not in SECRET}
