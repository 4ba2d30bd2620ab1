"""The database that is measured, and the bodies of creates."""

import random
from pathlib import Path

import msgspec

import bare
from retainer.domain import accounts, keys, users
from retainer.store.engines import Sqlite
from retainer.store.migrations import migrate
from retainer.store.tx import Store

CLIENTS, CONTACTS, TAGS, KEYS = 10_000, 2_500, 12, 500
CITIES = ("Zürich", "Lyon", "Porto", "Gdańsk", "Leeds", "Austin")

INSERT_TAG = """
INSERT INTO tags (account_id, created_at, updated_at, name, name_folded, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3 FROM accounts WHERE id = ?1"""
INSERT_CONTACT = """
INSERT INTO external_contacts (account_id, created_at, updated_at, client_id, name, email, role, is_primary, status,
                               last_name_folded, email_folded, search)
SELECT ?1, created_at, created_at, ?2, ?3, ?3, 'general', 0, 'active', ?3, ?3, ?3 FROM accounts WHERE id = ?1"""


def fill(path: Path) -> list[str]:
    """Make the database: one enterprise account with clients, contacts, tags and keys; answers the keys."""
    engine = Sqlite(path)
    migrate(engine)
    store = Store(engine)
    details = accounts.AccountDetails(name="North Agency", plan="enterprise")
    admin = users.UserDetails(name="Ana Lima", email="ana@north.example", role="admin")
    account, user, _ = users.open_account(store, details, admin)
    accounts.switch_api(store, account, on=True)
    scopes = ["clients:read", "clients:write"]
    made = [keys.create_key(store, account, keys.KeyDetails(f"key {n}", user, scopes))[1] for n in range(KEYS)]
    connection = bare.connect(str(path))
    caller = connection.execute(bare.KEY, (keys.digest(made[0]),)).fetchone()
    chance = random.Random(1)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(INSERT_TAG, [(account, f"Tag {n}", f"tag {n}") for n in range(TAGS)])
    for n in range(CLIENTS):
        bare.insert(connection, caller, bare.decode(describe(chance, n)))
    rows = [(account, chance.randint(1, CLIENTS), f"bo.{n}@example.com") for n in range(CONTACTS)]
    connection.executemany(INSERT_CONTACT, rows)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return made


def describe(chance: random.Random, n: int) -> bytes:
    """The body of a create."""
    members = {"name": f"{chance.choice(CITIES)} Studio {chance.randrange(10**6)}", "email": f"office.{n}@example.com"}
    members |= {"phone": f"+41 44 {n:07}", "website": f"https://client-{n}.example.com", "country": "CH"}
    members |= {"address_line1": f"{chance.randint(1, 200)} Long Street", "city": chance.choice(CITIES)}
    members |= {"hourly_rate": f"{chance.randint(50, 200)}.50", "tax_rate": "7.5"} if n % 2 else {}
    members |= {"notes": "Met at the fair; prefers e-mail."} if n % 4 == 0 else {}
    return msgspec.json.encode(members | {"tag_ids": chance.sample(range(1, TAGS + 1), n % 3)})
