"""People and keys of the demo's agencies, with a year of audit entries."""

from datetime import date, timedelta
from decimal import Decimal

from retainer.demo.make import at, make
from retainer.identity import accounts
from retainer.identity.keys import key_changes, keys
from retainer.identity.keys.key_changes import Rotation
from retainer.identity.keys.keys import SCOPES, KeyDetails
from retainer.identity.people import users
from retainer.identity.people.users import UserDetails
from retainer.store.tx import Tx
from retainer.values.exact import instant_after

OPENED = 395
"""How many days ago the account was opened."""
OFFICE = "203.0.113.24"
DASHBOARD = [*(f"{name}:read" for name in ("clients", "projects", "time", "invoices")), "reports:read"]
TRACKER = ["projects:read", "tasks:read", "time:read"]


def details_of(person: dict[str, str], domain: str) -> UserDetails:
    first_name, _, _ = person["name"].partition(" ")
    return make(UserDetails, email=f"{first_name.lower()}@{domain}", **person)


def employ(tx: Tx, today: date, others: list[UserDetails]) -> tuple[list[int], str]:
    """Add people and keys, and change them over the year; return all people's ids, and a key with all scopes."""

    def ago(days: int) -> None:
        at(tx, today - timedelta(days=days))

    def create_key(name: str, user_id: int, scopes: list[str], **fields: str) -> keys.NewKey:
        return keys.create_key(tx, make(KeyDetails, name=name, user_id=user_id, scopes=scopes, **fields))

    ago(OPENED - 1)
    admin_id = tx.actor.user_id
    people = [admin_id, *(users.create_user(tx, person) for person in others)]
    ago(380)
    accounts.switch_api(tx, on=True)
    create_key("Website form", admin_id, ["clients:write"])
    ago(300)
    tracker = create_key("Time tracker", people[1], TRACKER)
    imported = create_key("Data import", admin_id, list(SCOPES))
    ago(290)
    key_changes.change_key(tx, tracker.id, {"scopes": [*TRACKER, "time:write"]})
    key_changes.revoke_key(tx, imported.id)
    ago(200)
    users.change_user(tx, people[-1], {"weekly_capacity_minutes": 1920, "hourly_rate": Decimal(90)})
    ago(80)
    create_key("Reporting dashboard", admin_id, DASHBOARD, expires_at=instant_after(tx.now, timedelta(days=89)))
    ago(1)
    key_changes.rotate_key(tx, tracker.id, Rotation(hours=72))
    return people, create_key("Demo", admin_id, list(SCOPES)).value
