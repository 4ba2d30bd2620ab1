"""How the demo's agencies came to their people and keys: a year of what an admin does, as the audit has it."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from retainer.demo.make import at, make
from retainer.identity import accounts
from retainer.identity.accounts import AccountDetails
from retainer.identity.admins import Admin, operator_of
from retainer.identity.keys import key_changes, keys
from retainer.identity.keys.key_changes import Rotation
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.schema.identity import api_keys
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

OPENED = 400
"""Days ago."""
OFFICE, SERVER = "203.0.113.24", "198.51.100.80"
DASHBOARD = [*(f"{name}:read" for name in ("clients", "projects", "time", "invoices")), "reports:read"]


class Access(NamedTuple):
    """What lets one into an agency: a key with all scopes, and the email and password of its first admin."""

    key: str
    email: str
    password: str


def open_agency(store: Store, details: AccountDetails, admin: UserDetails) -> tuple[Admin, str]:
    """Open an account in the past; return its admin, at the office, and the admin's password."""
    password = passwords.generate()
    moment = instant_after(utcnow(), -timedelta(days=OPENED))
    account_id, user_id = users.open_account(store, details, admin, passwords.hash_password(password), at=moment)
    return replace(operator_of(store, account_id), user_id=user_id, role="admin", address=OFFICE), password


def administer(tx: Tx, today: date, team: list[UserDetails]) -> tuple[list[int], str]:
    """Add people, and keys as they are after a year; return all people's ids, and a key with all scopes."""

    def ago(days: int) -> None:
        at(tx, today - timedelta(days=days))

    ago(OPENED - 1)
    admin_id = tx.actor.user_id
    people = [admin_id, *(users.create_user(tx, person) for person in team)]
    ago(380)
    accounts.switch_api(tx, on=True)
    ago(378)
    website = keys.create_key(tx, make(KeyDetails, name="Website form", user_id=admin_id, scopes=["clients:write"]))
    ago(300)
    scopes = ["projects:read", "tasks:read", "time:read"]
    tracker = make(KeyDetails, name="Time tracker", user_id=people[1], scopes=scopes)
    tracking = keys.create_key(tx, tracker)
    import_key = make(KeyDetails, name="Import of 2024", user_id=admin_id, scopes=list(SCOPES))
    imported = keys.create_key(tx, import_key)
    ago(290)
    key_changes.change_key(tx, tracking.id, {"scopes": [*scopes, "time:write"]})
    ago(270)
    key_changes.revoke_key(tx, imported.id)
    ago(200)
    users.change_user(tx, people[-1], {"weekly_capacity_minutes": 1920, "hourly_rate": Decimal(90)})
    ago(80)
    end = instant_after(tx.now, timedelta(days=89))
    reports = make(KeyDetails, name="Reporting dashboard", user_id=admin_id, scopes=DASHBOARD, expires_at=end)
    keys.create_key(tx, reports)
    ago(1)
    key_changes.rotate_key(tx, tracking.id, Rotation(hours=72))
    demo = keys.create_key(tx, make(KeyDetails, name="Demo", user_id=admin_id, scopes=list(SCOPES)))
    for key_id, days in ((website.id, 120), (imported.id, 290)):
        used = instant_after(_noon(today), -timedelta(days=days))
        tx.update_columns(api_keys, key_id, {"last_used_at": used, "last_used_address": SERVER})
    return people, demo.value


def _noon(day: date) -> str:
    return f"{datetime(day.year, day.month, day.day, 12).isoformat()}.000000Z"  # noqa: DTZ001  # UTC is written behind it
