"""The command `retainer mail`: it pauses mail, and sends what waits without a server."""

from testing.agencies import new_store
from testing.process import command, query, running, tell, with_database

from retainer.identity.actors import operator_of
from retainer.schema.identity import second_factors
from tests.mail.server import SENDER, MailServer


def test_mail_waits_while_it_is_paused_and_is_sent_by_the_command(tmp_path):
    mail, folder = MailServer(), with_database(tmp_path)
    settings = {"RETAINER_SMTP_URL": mail.url, "RETAINER_MAIL_FROM": SENDER}
    assert tell(folder, "mail", "--pause", **settings) == {"mail": "paused"}
    with (
        running(folder, "--no-monitor", **settings) as server,
        server.client(server.agency("North", "enterprise")["key"]) as client,
    ):
        of_client = {"client_id": client.post("/clients", {"name": "Bergmann Optik"}).data["id"]}
        lines = [{"description": "Design", "unit_price": "500"}]
        quote = client.post("/quotes", {**of_client, "lines": lines}).data["id"]
        client.insist("POST", f"/quotes/{quote}/send", {"to": ["jo@x.example"], "attach": []})
    idle = command(folder, "mail", "--once", **settings)
    assert (idle.status, mail.got) == (0, [])
    assert "Resume: retainer mail --resume" in idle.err
    assert tell(folder, "mail", "--resume", **settings) == {"mail": "on"}
    assert tell(folder, "mail", "--once", **settings) == {"tried": 1}
    assert [got.recipient for got in mail.got] == ["jo@x.example"]
    mail.close()


def test_commands_that_change_how_a_person_signs_in_tell_the_person(tmp_path):
    folder, settings = (
        with_database(tmp_path),
        {"RETAINER_SMTP_URL": "smtp://127.0.0.1:1", "RETAINER_MAIL_FROM": SENDER},
    )
    person = ("--admin-name", "Ana", "--admin-email", "ana@north.example", "--password", "four unrelated words")
    made = tell(folder, "account", "create", "--name", "North", "--plan", "solo", *person, **settings)
    user, database = made["user_id"], folder / "data" / "retainer.db"
    tell(folder, "user", "set", user, "--password", "other unrelated words", **settings)
    tell(folder, "user", "set", user, "--email", "new@north.example", **settings)
    store = new_store(database)
    with store.begin(operator_of(store, made["account_id"]), write=True) as tx:
        tx.insert_raw(second_factors, {"user_id": user, "secret": "A" * 32, "last_step": 0})
    store.engine.close()
    tell(folder, "user", "remove-second-factor", user, **settings)
    assert query(database, 'SELECT "to", subject FROM messages ORDER BY id') == [
        ("ana@north.example", "Your password was changed at North"),
        ("ana@north.example", "The email with which you sign in was changed at North"),
        ("new@north.example", "The email with which you sign in was changed at North"),
        ("new@north.example", "Your second factor was removed at North"),
    ]
    tell(folder, "user", "set", user, "--password", "words without any mail server")
