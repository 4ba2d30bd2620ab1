"""The demo: two agencies with people, clients and a year of plausible work."""

import math
import random
from datetime import date, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from retainer.crm import clients, contacts, tags
from retainer.demo import sales, samples, team, traffic
from retainer.demo.agency import CONTENT, HARBOUR, NORTHLIGHT, Agency, Customer
from retainer.demo.bills import Bills
from retainer.demo.care import Care
from retainer.demo.make import at, create, make
from retainer.demo.work import Work
from retainer.documents.logo_files import draw
from retainer.identity import logos
from retainer.identity.account_types import AccountDetails
from retainer.identity.actors import Person, operator_of
from retainer.identity.people import passwords, users
from retainer.store.tx import Store, Tx
from retainer.values.collation import SEPARATOR, sort_key
from retainer.values.exact import instant_after, utcnow


class Access(NamedTuple):
    """Access to an agency: a key with all scopes, and the email and password of its first admin."""

    key: str
    email: str
    password: str


def fill(store: Store) -> Access:
    """Fill an empty database with two agencies; return the access to the first.

    Its first records are those of the samples, and it has used its keys and webhooks.
    """
    rng = random.Random(NORTHLIGHT.domain)  # noqa: S311  # demos are reproducible
    admin, access = _open(store, NORTHLIGHT, rng, is_first=True)
    traffic.deliver(store, admin)
    traffic.request(store, admin, rng)
    _open(store, HARBOUR, rng)
    return access


def _open(store: Store, agency: Agency, rng: random.Random, *, is_first: bool = False) -> tuple[Person, Access]:
    """Open an agency a year ago and fill it; return its first admin, and the access to it."""
    first, *others = (team.details_of(person, agency.domain) for person in agency.people)
    password, logo = passwords.generate(), draw(agency.logo)
    details, moment = make(AccountDetails, **agency.account), instant_after(utcnow(), -timedelta(days=team.OPENED))
    account_id, user_id = users.open_account(store, details, first, passwords.hash_password(password), at=moment)
    admin = replace(operator_of(store, account_id), user_id=user_id, role="admin", address=team.OFFICE)
    with store.begin(admin, write=True, seconds=math.inf) as tx:
        today = date.fromisoformat(tx.today)
        people, key = team.employ(tx, today, others)
        at(tx, today - timedelta(days=team.OPENED - 2))
        logos.set_logo(tx, logo)
        if is_first:
            samples.create_samples(tx, today)
        tag_ids = {name: create(tags.create_tag, tx, name=name, color=color).id for name, color in CONTENT.tags.items()}
        customers = [_client(tx, today, customer, tag_ids) for customer in agency.customers]
        at(tx, today)
        work = Work(tx, rng, people)
        work.plan(customers)
        work.record()
        sales.offer(tx, rng, customers)
        sales.spend(tx, rng, people, [job.project for job in work.jobs])
        bills = Bills(tx, rng, work.jobs, tag_ids["Late payer"])
        bills.send(customers)
        tx.now = utcnow()  # the monitor has checked the sites until this moment
        care = Care(tx, rng, people)
        care.host(customers)
        care.support()
        work.close(customers)
    bills.receive(store, admin)
    return admin, Access(key, first.email, password)


def _client(tx: Tx, today: date, customer: Customer, tag_ids: dict[str, int]) -> clients.Client:
    letters = sort_key(customer.fields["name"]).partition(SEPARATOR)[0]
    domain = f"{''.join(letter for letter in letters if 'a' <= letter <= 'z')}.example"
    addresses = {"email": f"office@{domain}", "website": f"https://{domain}"}
    at(tx, today - timedelta(days=9 if "status" in customer.fields else team.OPENED - 5))
    chosen = [tag_ids[tag] for tag in customer.tags]
    client = create(
        clients.create_client,
        tx,
        **{"status": "active"} | customer.fields,
        **customer.address,
        **addresses,
        tag_ids=chosen,
    )
    email = f"{customer.contact['first_name'].lower()}@{domain}"
    create(contacts.create_external_contact, tx, client_id=client.id, email=email, **customer.contact)
    if customer.is_archived:
        client.status = "archived"
    return client
