"""The demo: two agencies with people, clients, a year of plausible work, and a smaller year before it."""

import math
import random
from collections.abc import Callable
from datetime import date, timedelta

from retainer.crm import clients, contacts, tags
from retainer.demo import administration, deliveries, sales, samples
from retainer.demo.administration import Access
from retainer.demo.agencies import (
    CITIES,
    HARBOUR,
    NORTHLIGHT,
    PHONES,
    STREETS,
    TAGS,
    VAT_NUMBERS,
    Agency,
    Customer,
    Person,
)
from retainer.demo.bills import Bills
from retainer.demo.care import Care
from retainer.demo.make import at, create, make
from retainer.demo.traffic import Traffic
from retainer.demo.work import Work
from retainer.documents.logo_files import draw
from retainer.identity import logos
from retainer.identity.account_types import AccountDetails
from retainer.identity.people.users import UserDetails
from retainer.store.tx import Store, Tx
from retainer.values.collation import SEPARATOR, sort_key
from retainer.values.exact import utcnow

AT_HOME = {"DE", "US"}
OLDEST_CLIENT = administration.OPENED - 5
"""How many days ago the clients came."""


def fill(store: Store) -> Access:
    """Fill an empty database with two agencies; return the access to the first."""
    access = _open(store, NORTHLIGHT, samples.create_samples)
    _open(store, HARBOUR)
    return access


def _open(store: Store, agency: Agency, create_samples: Callable[[Tx, date], None] | None = None) -> Access:
    """Open an agency and create its records, after those of the samples; return the access of its first admin."""
    team = [_user(person, agency.domain) for person in agency.people]
    admin, password = administration.open_agency(store, make(AccountDetails, **agency.account), team[0])
    logo = draw(agency.logo)
    rng = random.Random(agency.domain)  # noqa: S311  # demos are reproducible
    with store.begin(admin, write=True, seconds=math.inf) as tx:
        today = date.fromisoformat(tx.today)
        people, key = administration.administer(tx, today, team[1:])
        at(tx, today - timedelta(days=administration.OPENED - 2))
        logos.set_logo(tx, logo)
        if create_samples is not None:
            create_samples(tx, today)
        tag_ids = {name: create(tags.create_tag, tx, name=name, color=color).id for name, color in TAGS.items()}
        customers = []
        for customer in sorted(agency.customers, key=lambda customer: customer.status == "prospect"):
            at(tx, today - timedelta(days=9 if customer.status == "prospect" else OLDEST_CLIENT))
            customers.append(_client(tx, customer, tag_ids, rng))
        at(tx, today)
        work = Work(tx, rng, people, tag_ids)
        work.plan(customers)
        work.record()
        sales.offer(tx, rng, customers)
        sales.spend(tx, rng, people, [job.project for job in work.jobs])
        bills = Bills(tx, rng, work.jobs + work.earlier, tag_ids)
        bills.send(customers)
        tx.now = utcnow()  # the monitor has checked the sites until this moment
        care = Care(tx, rng, people, tag_ids)
        care.host(customers)
        care.support(customers)
        work.close(customers)
    bills.receive(store, admin)
    deliveries.deliver(store, admin)
    Traffic(store, admin, rng).request()
    return Access(key, team[0].email, password)


def _ascii(name: str) -> str:
    """Return the ASCII letters of a name, for addresses."""
    letters = sort_key(name).partition(SEPARATOR)[0]
    return "".join(letter for letter in letters if "a" <= letter <= "z")


def _user(person: Person, domain: str) -> UserDetails:
    first_name, _, _ = person.name.partition(" ")
    return make(UserDetails, email=f"{first_name.lower()}@{domain}", **person._asdict())


def _client(tx: Tx, customer: Customer, tag_ids: dict[str, int], rng: random.Random) -> clients.Client:
    """Create a client with its contacts; return it with its final status, which `Work.close` writes."""
    domain = f"{_ascii(customer.name)}.example"
    region, _, postal_code = CITIES[customer.city].rpartition(" ")
    vat_number = VAT_NUMBERS.get(customer.country)
    client = create(
        clients.create_client,
        tx,
        name=customer.name,
        status="prospect" if customer.status == "prospect" else "active",
        email=f"office@{domain}",
        website=f"https://{domain}",
        address_line1=rng.choice(STREETS[customer.country]).format(rng.randint(1, 120)),
        postal_code=postal_code,
        city=customer.city,
        region=region or None,
        country=customer.country,
        vat_number=vat_number and vat_number.format(rng.randint(10**7, 10**8 - 1)),
        language="de" if customer.country == "AT" else None,
        currency=customer.currency,
        hourly_rate=customer.hourly_rate,
        tax_rate=None if customer.country in AT_HOME else "0",  # clients abroad pay the tax there
        tag_ids=[tag_ids[tag] for tag in customer.tags],
    )
    for index, contact in enumerate(customer.contacts):
        email = f"{_ascii(contact.last_name)}@{domain}"
        fields = contact._asdict() | {"phone": PHONES[customer.country].format(10 + 2 * client.id + index)}
        create(contacts.create_external_contact, tx, client_id=client.id, email=email, **fields)
    client.status = customer.status
    return client
