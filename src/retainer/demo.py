"""The demo: two agencies with people, clients and contacts that could be real."""

from typing import Any, TypeVar

from retainer.api import clients, contacts, tags
from retainer.domain import accounts, keys, users
from retainer.domain.accounts import AccountDetails
from retainer.domain.keys import SCOPES, KeyDetails
from retainer.domain.members import complete, read_members
from retainer.domain.users import UserDetails
from retainer.errors import Faults, invalid
from retainer.store.records import Record
from retainer.store.tx import Actor, Store, Tx

R = TypeVar("R", bound=Record)

TAGS = {
    "Retainer": "#2f9e44",
    "Website": "#1971c2",
    "E-commerce": "#e8590c",
    "Brand": "#9c36b5",
    "Late payer": "#e03131",
}

# name, city, country, currency, hourly rate, status, tags, contacts (first name, last name, role, job title)
NORTHLIGHT = [
    ("Bergmann Optik", "Hamburg", "DE", "EUR", "110.00", "active", ["Website", "Retainer"],
     [("Jana", "Bergmann", "decision_maker", "Owner"), ("Timo", "Lenz", "technical", "IT")]),
    ("Café Morgenrot", "Berlin", "DE", "EUR", None, "active", ["Brand"],
     [("Selin", "Aydin", "decision_maker", "Owner")]),
    ("Dachwerk Krause", "Leipzig", "DE", "EUR", "95.00", "active", ["Website"],
     [("Uwe", "Krause", "decision_maker", "Managing director"), ("Petra", "Voigt", "billing", "Bookkeeping")]),
    ("Elbe Logistik", "Dresden", "DE", "EUR", "125.00", "active", ["Website", "Late payer"],
     [("Nadine", "Scholz", "general", "Marketing"), ("Ralf", "Otto", "billing", "Accounts payable")]),
    ("Fjordlys AS", "Bergen", "NO", "NOK", "1450.00", "active", ["E-commerce", "Retainer"],
     [("Ingrid", "Solheim", "decision_maker", "Chief executive"), ("Lars", "Moen", "technical", "Developer")]),
    ("Galerie Lumière", "Lyon", "FR", "EUR", None, "active", ["Brand", "Website"],
     [("Camille", "Moreau", "decision_maker", "Director")]),
    ("Hofladen Sonnenfeld", "Potsdam", "DE", "EUR", "85.00", "active", ["E-commerce"],
     [("Anke", "Thiele", "decision_maker", "Owner")]),
    ("Ibsen Møbler", "Aarhus", "DK", "DKK", "950.00", "active", ["E-commerce"],
     [("Mette", "Ibsen", "decision_maker", "Owner"), ("Jonas", "Holm", "technical", "Shop manager")]),
    ("Kanzlei Reuter", "München", "DE", "EUR", "140.00", "active", ["Retainer"],
     [("Dr. Helene", "Reuter", "decision_maker", "Partner"), ("Sven", "Brandt", "billing", "Office")]),
    ("Ludwig & Söhne", "Köln", "DE", "EUR", None, "prospect", [],
     [("Markus", "Ludwig", "decision_maker", "Managing director")]),
    ("Musikschule Allegro", "Wien", "AT", "EUR", "90.00", "active", ["Website"],
     [("Theresa", "Gruber", "general", "Secretary")]),
    ("Nordwind Reisen", "Kiel", "DE", "EUR", "105.00", "archived", ["Website", "Late payer"],
     [("Frauke", "Petersen", "decision_maker", "Owner")]),
]  # fmt: skip
HARBOUR = [
    ("Alder Coffee Roasters", "Portland", "US", "USD", "135.00", "active", ["E-commerce"],
     [("Maya", "Whitfield", "decision_maker", "Founder")]),
    ("Blue Heron Dental", "Seattle", "US", "USD", None, "active", ["Website"],
     [("Daniel", "Okafor", "decision_maker", "Practice owner"), ("Ruth", "Hale", "billing", "Office manager")]),
    ("Cedar & Stone Builders", "Bend", "US", "USD", "120.00", "active", ["Website", "Retainer"],
     [("Luis", "Ortega", "decision_maker", "Owner")]),
    ("Driftwood Yoga", "Astoria", "US", "USD", "90.00", "prospect", ["Brand"],
     [("Hannah", "Pierce", "general", "Studio manager")]),
    ("Evergreen Outfitters", "Tacoma", "US", "USD", "150.00", "active", ["E-commerce", "Retainer"],
     [("Priya", "Natarajan", "decision_maker", "Head of digital"), ("Cole", "Jensen", "technical", "Developer")]),
]  # fmt: skip


def fill(store: Store) -> str:
    """Fill an empty database with two agencies; answers a key of the first with all scopes."""
    key = _agency(
        store,
        AccountDetails(name="Northlight Studio", plan="agency", timezone="Europe/Berlin"),
        [("Lena Hartwig", "admin"), ("Omar Said", "member"), ("Greta Nilsson", "member"), ("Paul Adler", "member")],
        "northlight.example",
        NORTHLIGHT,
    )
    _agency(
        store,
        AccountDetails(name="Harbour & Pine", plan="scale", currency="USD", timezone="America/Los_Angeles"),
        [("Beth Carver", "admin"), ("Andre Silva", "member")],
        "harbourpine.example",
        HARBOUR,
    )
    return key


def _agency(
    store: Store, details: AccountDetails, people: list[tuple[str, str]], domain: str, customers: list[Any]
) -> str:
    """Open an agency with its people and clients; answers a key of its admin."""
    team = [
        UserDetails(
            name=name, email=f"{name.split()[0].lower()}@{domain}", role="admin" if role == "admin" else "member"
        )
        for name, role in people
    ]
    account_id, admin_id, _ = users.open_account(store, details, team[0])
    for user in team[1:]:
        users.create_user(store, account_id, user)
    accounts.switch_api(store, account_id, on=True)
    _, key = keys.create_key(store, account_id, KeyDetails("Demo", admin_id, list(SCOPES)))
    actor = Actor(account_id, admin_id, "admin", details.currency, details.timezone, 30, "C-{0000}")
    with store.begin(actor, write=True) as tx:
        tag_ids = {
            name: tags.create_tag(tx, _record(tags.Tag, name=name, color=color)).id for name, color in TAGS.items()
        }
        for customer in customers:
            _client(tx, customer, tag_ids)
    return key


def _client(tx: Tx, customer: Any, tag_ids: dict[str, int]) -> None:
    name, city, country, currency, rate, status, tagged, people = customer
    site = "".join(letter for letter in name.lower() if "a" <= letter <= "z")
    client = clients.create_client(
        tx,
        _record(
            clients.Client,
            name=name,
            status=status,
            email=f"office@{site}.example",
            website=f"https://{site}.example",
            city=city,
            country=country,
            currency=currency,
            hourly_rate=rate,
            tag_ids=[tag_ids[tag] for tag in tagged],
        ),
    )
    for first, last, role, title in people:
        address = "".join(letter for letter in last.lower() if "a" <= letter <= "z")
        contacts.create_external_contact(
            tx,
            _record(
                contacts.Contact,
                client_id=client.id,
                first_name=first,
                last_name=last,
                email=f"{address}@{site}.example",
                role=role,
                job_title=title,
            ),
        )


def _record(shape: type[R], **members: Any) -> R:
    """A record as a body would describe it, by the same rules."""
    faults: Faults = {}
    record = complete(shape, read_members(shape, members, faults), members, faults)
    if record is None:
        raise invalid(faults)
    return record
