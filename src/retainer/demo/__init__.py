"""The demo: two agencies with people, clients and a year of plausible work."""

import math
import random
import secrets
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from msgspec.structs import replace

from retainer.crm import clients, contacts, tags
from retainer.demo import traffic
from retainer.demo.bills import bill, receive
from retainer.demo.care import care
from retainer.demo.make import CONTENT, FOLDER, Scene, change, create, make, read
from retainer.demo.samples import create_samples
from retainer.demo.work import offer, spend, work
from retainer.documents.logo_files import draw
from retainer.identity import accounts, logos
from retainer.identity.accounts import AccountDetails
from retainer.identity.actors import Person, operator_of
from retainer.identity.keys import keys
from retainer.identity.keys.keys import SCOPES, KeyDetails, Rotation
from retainer.identity.people import passwords, users
from retainer.identity.people.users import UserDetails
from retainer.store.tx import Store
from retainer.values.collation import SEPARATOR, sort_key
from retainer.values.exact import instant_after, utcnow

OPENED = 395
"""How many days ago the accounts were opened."""
OFFICE = "203.0.113.24"
DASHBOARD = [*(f"{name}:read" for name in ("clients", "projects", "time", "invoices")), "reports:read"]
TRACKER = ["projects:read", "tasks:read", "time:read"]


class Access(NamedTuple):
    """Access to an agency: a key with all scopes, and the email and password of its first admin."""

    key: str
    email: str
    password: str


SENDER = "mail@northlight.example"
"""The address that the first message comes from, if the server has none."""


def fill(store: Store) -> Access:
    """Fill an empty database with two agencies; return the access to the first.

    Its first records are those of the samples, and it has used its keys and webhooks.
    """
    store.mail_from = store.mail_from or SENDER
    rng = random.Random("northlight.example")  # noqa: S311  # demos are reproducible
    admin, access = _open(store, "northlight", rng)
    traffic.deliver(store, admin)
    traffic.request(store, admin, rng)
    _open(store, "harbourpine", rng)
    return access


def _open(store: Store, name: str, rng: random.Random) -> tuple[Person, Access]:
    """Open an agency a year ago and fill it; return its first admin, and the access to it."""
    agency = read(name)
    first, *others = (
        make(UserDetails, email=f"{person['name'].partition(' ')[0].lower()}@{name}.example", **person)
        for person in agency["people"]
    )
    password, logo = secrets.token_urlsafe(12), draw((FOLDER / f"{name}.svg").read_bytes())
    details, moment = make(AccountDetails, **agency["account"]), instant_after(utcnow(), -timedelta(days=OPENED))
    account_id, user_id = users.open_account(store, details, first, passwords.hash_password(password), at=moment)
    admin = replace(operator_of(store, account_id), user_id=user_id, role="admin", address=OFFICE)
    with store.begin(admin, write=True, seconds=math.inf) as tx:
        scene = Scene(tx, rng)
        key = _employ(scene, others)
        scene.ago(OPENED - 2)
        logos.set_logo(tx, logo)
        if name == "northlight":
            create_samples(tx, scene.today)
        tag_ids = {
            name: create(tags.create_tag, tx, name=name, color=color).id for name, color in CONTENT["tags"].items()
        }
        scene.clients = [_client(scene, customer, tag_ids) for customer in agency["customers"]]
        scene.ago(0)
        work(scene)
        offer(scene)
        spend(scene)
        incoming = bill(scene, tag_ids["Late payer"])
        care(scene)
        for client in scene.clients:
            if client.status == "archived":  # only now: archived clients take no work
                change(clients.update_client, tx, client.id, status="archived")
    receive(store, admin, incoming)
    return admin, Access(key, first.email, password)


def _employ(scene: Scene, others: list[UserDetails]) -> str:
    """Add people and keys, and change them over the year; return a key with all scopes."""
    tx, (admin_id,) = scene.tx, scene.people

    def create_key(name: str, user_id: int, scopes: list[str], **fields: str) -> keys.NewKey:
        return keys.create_key(tx, make(KeyDetails, name=name, user_id=user_id, scopes=scopes, **fields))

    scene.ago(OPENED - 1)
    scene.people += [users.create_user(tx, person) for person in others]
    scene.ago(380)
    accounts.switch_api(tx, on=True)
    create_key("Website form", admin_id, ["clients:write"])
    scene.ago(300)
    tracker = create_key("Time tracker", scene.people[1], TRACKER)
    imported = create_key("Data import", admin_id, list(SCOPES))
    scene.ago(290)
    keys.change_key(tx, tracker.id, {"scopes": [*TRACKER, "time:write"]})
    keys.revoke_key(tx, imported.id)
    scene.ago(200)
    users.change_user(tx, scene.people[-1], {"weekly_capacity_minutes": 1920, "hourly_rate": Decimal(90)})
    scene.ago(80)
    create_key("Reporting dashboard", admin_id, DASHBOARD, expires_at=instant_after(tx.now, timedelta(days=89)))
    scene.ago(1)
    keys.rotate_key(tx, tracker.id, Rotation(hours=72))
    return create_key("Demo", admin_id, list(SCOPES)).value


def _client(scene: Scene, customer: dict[str, Any], tag_ids: dict[str, int]) -> clients.Client:
    """Create a client with its contact; one that is archived in the end says so, and is archived after its work."""
    letters = sort_key(customer["fields"]["name"]).partition(SEPARATOR)[0]
    domain = f"{''.join(letter for letter in letters if 'a' <= letter <= 'z')}.example"
    fields = {"status": "active", "email": f"office@{domain}", "website": f"https://{domain}", **customer["fields"]}
    scene.ago(9 if fields["status"] == "prospect" else OPENED - 5)
    chosen = [tag_ids[tag] for tag in customer["tags"]]
    client = create(clients.create_client, scene.tx, tag_ids=chosen, **fields, **customer["address"])
    email = f"{customer['contact']['first_name'].lower()}@{domain}"
    create(contacts.create_external_contact, scene.tx, client_id=client.id, email=email, **customer["contact"])
    if "is_archived" in customer:
        client.status = "archived"
    return client
