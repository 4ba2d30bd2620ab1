"""Kills: whatever the mail server does and whenever Retainer dies, each message arrives, and few arrive twice."""

import os
import random
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPException

import psycopg
import pytest
from testing.process import query, start, until, with_database

from retainer.mail.sender import loop
from tests.length import first, length
from tests.mail.server import CUT, LOSE, SENDER, STALL, STEPS, MailServer

COUNT = int(os.environ.get("RETAINER_TEST_MESSAGES", length(100)))
KILLS = 3 + COUNT // 50
BUSY = "451 4.3.0 busy"
STATES = "SELECT status, count(*) FROM messages GROUP BY status"


def make_due(database):
    """Make every queued message due while no server runs, as time would: pauses end, and the leases of the dead."""
    statement = "UPDATE messages SET next_attempt_at = created_at WHERE status = 'queued'"
    if isinstance(database, str):
        with psycopg.connect(database) as session:
            session.execute(statement)
        return
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.execute(statement)


class Troubles:
    """What goes wrong with a mail server, by chance; addresses of `gone` do not exist."""

    def __init__(self, chance):
        self.chance, self.count, self.lost, self.is_calm = chance, 0, 0, False

    def __call__(self, step, recipient):
        if step == "rcpt" and recipient.startswith("gone"):
            return "550 5.1.1 no such user"
        if self.is_calm or step not in STEPS or self.chance.random() > 0.04:
            return None
        self.count += 1
        trouble = self.chance.choice([CUT, CUT, CUT, BUSY, BUSY, LOSE, STALL] if step != "connect" else [CUT, BUSY])
        if trouble != LOSE:
            return trouble
        self.lost += step == "end"
        return LOSE if step == "end" else CUT


def address_of(number):
    return f"{'gone' if number % 20 == 7 else 'jo'}{number}@x.example"


def send_all(server, key, quote):
    """Send a quote to each address; the same request again if its response was lost. Return who gets a message."""
    accepted = []
    for number in range(COUNT):
        body = {"to": [address_of(number)], "attach": ["pdf"] if number % 10 == 0 else []}
        sent = None
        while sent is None:
            with suppress(OSError, HTTPException), server.client(key, timeout=20) as client:
                sent = client.insist("POST", f"/quotes/{quote}/send", body, Idempotency_Key=f"message-{number}")
        accepted.extend(each["to"] for each in sent.data["messages"])
    return accepted


def let_some_arrive(mail, count):
    """Wait until so many messages more have arrived; not for ever, since stalls may have taken all connections."""
    enough = len(mail.got) + count
    with suppress(AssertionError):
        until(lambda: len(mail.got) >= enough, "some have arrived", 15)


@pytest.mark.parametrize("database", first(["sqlite", "postgresql"]))
def test_no_kill_and_no_mail_server_loses_a_message_or_queues_one_twice(tmp_path, request, database):
    chance = random.Random("kills")
    mail = MailServer()
    mail.answer = troubles = Troubles(chance)
    settings = {"RETAINER_SMTP_URL": mail.url, "RETAINER_MAIL_FROM": SENDER, "RETAINER_MAX_MESSAGES": "100000"}
    folder = with_database(tmp_path)
    if database == "postgresql":
        settings["RETAINER_DATABASE_URL"] = request.getfixturevalue("postgresql_databases").create()
    server = start(folder, "--no-monitor", **settings)
    key, port = server.agency("North", "enterprise")["key"], server.port
    with server.client(key) as client:
        of_client = {"client_id": client.post("/clients", {"name": "Bergmann Optik"}).data["id"]}
        lines = [{"description": "Design", "unit_price": "500"}]
        quote = client.post("/quotes", {**of_client, "lines": lines}).data["id"]
    with ThreadPoolExecutor(1) as writers:
        writing = writers.submit(send_all, server, key, quote)
        for turn in range(KILLS):
            let_some_arrive(mail, chance.randint(1, 2 * COUNT // KILLS))
            if turn == KILLS - 1:
                writing.result()
                until(lambda: len(mail.got) > COUNT / 3, "else the test shows little", 600)
                troubles.is_calm, among_troubles = True, len(mail.got)
            server.kill()
            make_due(server.database)
            server = start(folder, "--no-monitor", port=port, **settings)
    until(lambda: "queued" not in dict(query(server.database, STATES)), "all is sent", 600)
    assert server.stop() == 0
    mail.close()
    rows = query(server.database, 'SELECT "to", message_id, status FROM messages')
    assert sorted(writing.result()) == sorted(to for to, *_ in rows) == sorted(map(address_of, range(COUNT)))
    assert {status for to, _, status in rows if to.startswith("gone")} == {"failed"}
    sent = {(to, message_id) for to, message_id, status in rows if status == "sent"}
    assert {to for to, _ in sent} == {to for to, *_ in rows if not to.startswith("gone")}
    arrived = Counter((got.recipient, got.message_id) for got in mail.got)
    assert arrived.keys() == sent, "none is lost, and all copies of a message have one Message-ID"
    twice = arrived.total() - len(arrived)
    told = f"{COUNT} messages, {among_troubles} of them among {troubles.count} troubles, {KILLS} kills"
    print(f"{told}, {troubles.lost} replies lost: {twice} copies")  # noqa: T201
    assert twice <= troubles.lost + KILLS * loop.CONNECTIONS
