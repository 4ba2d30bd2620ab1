"""People and keys of the demo's agencies, with two years of audit entries."""

from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from retainer.demo.make import at, make
from retainer.identity import accounts
from retainer.identity.account_types import AccountDetails
from retainer.identity.admins import Admin, operator_of
from retainer.identity.keys import key_changes, keys
from retainer.identity.keys.key_changes import Rotation
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.schema.identity import api_keys
from retainer.store.tx import Store, Tx
from retainer.values.exact import instant_after, utcnow

OPENED = 760
"""How many days ago the accounts were opened."""
OFFICE, SERVER = "203.0.113.24", "198.51.100.80"
DASHBOARD = [*(f"{name}:read" for name in ("clients", "projects", "time", "invoices")), "reports:read"]


class Access(NamedTuple):
    """Access to an agency: a key with all scopes, and the email and password of its first admin."""

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
    """Add people and keys, and change them over two years; return all people's ids, and a key with all scopes."""

    def ago(days: int) -> None:
        at(tx, today - timedelta(days=days))

    def create_key(name: str, user_id: int, scopes: list[str], expires_at: str | None = None) -> keys.NewKey:
        details = make(KeyDetails, name=name, user_id=user_id, scopes=scopes, expires_at=expires_at)
        return keys.create_key(tx, details)

    ago(OPENED - 1)
    admin_id = tx.actor.user_id
    people = [admin_id, *(users.create_user(tx, person) for person in team)]
    ago(380)
    accounts.switch_api(tx, on=True)
    ago(378)
    website = create_key("Website form", admin_id, ["clients:write"])
    ago(300)
    scopes = ["projects:read", "tasks:read", "time:read"]
    tracker = create_key("Time tracker", people[1], scopes)
    imported = create_key("Data import", admin_id, list(SCOPES))
    ago(290)
    key_changes.change_key(tx, tracker.id, {"scopes": [*scopes, "time:write"]})
    ago(270)
    key_changes.revoke_key(tx, imported.id)
    ago(200)
    users.change_user(tx, people[-1], {"weekly_capacity_minutes": 1920, "hourly_rate": Decimal(90)})
    ago(80)
    create_key("Reporting dashboard", admin_id, DASHBOARD, expires_at=instant_after(tx.now, timedelta(days=89)))
    ago(1)
    key_changes.rotate_key(tx, tracker.id, Rotation(hours=72))
    demo = create_key("Demo", admin_id, list(SCOPES))
    for key_id, days in ((website.id, 120), (imported.id, 290)):
        used = {"last_used_at": instant_after(tx.now, -timedelta(days=days)), "last_used_address": SERVER}
        tx.update_columns(api_keys, key_id, used)
    return people, demo.value
