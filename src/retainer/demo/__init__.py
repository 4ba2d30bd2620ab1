"""The demo: two agencies with people, clients and a year of work that could be real."""

import math
import random
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

from retainer.crm import clients, contacts, tags
from retainer.demo import administration, sales, samples
from retainer.demo.administration import Access
from retainer.demo.agencies import HARBOUR, NORTHLIGHT, STREETS, TAGS, Agency
from retainer.demo.bills import Bills
from retainer.demo.care import Care
from retainer.demo.make import at, make
from retainer.demo.traffic import Traffic
from retainer.demo.work import Work
from retainer.identity.accounts import AccountDetails
from retainer.identity.people.users import UserDetails
from retainer.store.tx import Store, Tx
from retainer.values.collation import SEPARATOR, sort_key

AT_HOME = {"DE", "US"}


def fill(store: Store) -> Access:
    """Fill an empty database with two agencies; return what lets one into the first."""
    access = _agency(store, NORTHLIGHT, samples.prepare)
    _agency(store, HARBOUR)
    return access


def _agency(store: Store, agency: Agency, prepare: Callable[[Tx, date], None] | None = None) -> Access:
    """Open an agency with its people, its clients and their work; return what lets one in as its first admin.

    `prepare` creates the records that come before all others.
    """
    details = make(
        AccountDetails,
        name=agency.name,
        plan=agency.plan,
        currency=agency.currency,
        timezone=agency.timezone,
        hourly_rate=agency.hourly_rate,
        tax_rate=agency.tax_rate,
    )
    team = [_person(agency, *person) for person in agency.people]
    admin, password = administration.open_agency(store, details, team[0])
    with store.begin(admin, write=True, seconds=math.inf) as tx:
        today = date.fromisoformat(tx.today)
        people, key = administration.administer(tx, today, team[1:])
        at(tx, today - timedelta(days=administration.OPENED - 2))
        if prepare is not None:
            prepare(tx, today)
        at(tx, today)
        tag_ids = {name: tags.create_tag(tx, make(tags.Tag, name=name, color=color)).id for name, color in TAGS.items()}
        rng = random.Random(agency.name)  # noqa: S311  # demos are reproducible
        customers = []
        for customer in sorted(agency.customers, key=lambda customer: customer[5] == "prospect"):
            at(tx, today - timedelta(days=9 if customer[5] == "prospect" else 400))
            customers.append(_client(tx, customer, tag_ids, rng))
        at(tx, today)
        work = Work(tx, rng, people, tag_ids)
        work.plan(customers)
        work.record()
        sales.offer(tx, rng, customers)
        sales.spend(tx, rng, people, [job.project for job in work.jobs])
        Bills(tx, rng, work.jobs).send(customers)
        care = Care(tx, rng, people)
        care.host(customers)
        care.support(customers)
        work.close(customers)
    Traffic(store, admin, rng).request()
    return Access(key, team[0].email, password)


def _ascii(name: str) -> str:
    """Return a name with ASCII letters alone, for addresses."""
    letters = sort_key(name).partition(SEPARATOR)[0]
    return "".join(letter for letter in letters if "a" <= letter <= "z")


def _person(agency: Agency, name: str, role: str, hourly_rate: str | None, cost_rate: str) -> UserDetails:
    address = f"{name.split(maxsplit=1)[0].lower()}@{agency.domain}"
    return make(UserDetails, name=name, email=address, role=role, hourly_rate=hourly_rate, cost_rate=cost_rate)


def _client(tx: Tx, customer: Any, tag_ids: dict[str, int], rng: random.Random) -> clients.Client:
    """Create a client with its contacts; return it with its final status: `Work.close` writes that of archived ones."""
    name, city, country, currency, rate, status, tagged, people = customer
    site = _ascii(name)
    client = clients.create_client(
        tx,
        make(
            clients.Client,
            name=name,
            status="prospect" if status == "prospect" else "active",
            email=f"office@{site}.example",
            website=f"https://{site}.example",
            address_line1=f"{rng.choice(STREETS)} {rng.randint(1, 120)}",
            city=city,
            country=country,
            vat_number=f"{country}{rng.randint(10**8, 10**9 - 1)}",
            currency=currency,
            hourly_rate=rate,
            tax_rate=None if country in AT_HOME else "0",  # clients abroad pay the tax there
            tag_ids=[tag_ids[tag] for tag in tagged],
        ),
    )
    for first, last, role, title in people:
        address = _ascii(last)
        contacts.create_external_contact(
            tx,
            make(
                contacts.ExternalContact,
                client_id=client.id,
                first_name=first,
                last_name=last,
                email=f"{address}@{site}.example",
                role=role,
                job_title=title,
            ),
        )
    client.status = status
    return client
