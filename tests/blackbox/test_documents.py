"""Documents over a real server: their kinds of file, and bytes that stay the same wherever the installation goes."""

import pytest
from testing.process import command, running, tell, with_database

from retainer.settings import BASE_PATH
from tests.length import only_full

PDF, XML = "application/pdf", "application/xml"
LINE = {"description": "Design", "quantity": "2", "unit_price": "100", "tax_rate": "19"}
LOGO = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><rect width='9' height='9'/></svg>"
PATHS = ("invoices/1", "credit-notes/1")


@pytest.fixture(scope="module")
def issued(tmp_path_factory):
    """A folder with an installation, and the files of its invoice and credit note, which were asked for over HTTP."""
    folder = with_database(tmp_path_factory.mktemp("documents"))
    with running(folder) as server:
        account = server.agency("North", "agency")
        tell(folder, "account", "set", account["account_id"], "--country", "DE", "--vat-number", "DE123456788")
        with server.client(account["key"]) as client:
            client.post("/clients", {"name": "Bergmann", "country": "DE"})
            client.post("/invoices", {"client_id": 1, "status": "sent", "lines": [LINE]})
            client.post("/invoices/1/credit-notes", {"amount": "50.00"})
            files = {(path, kind): got(client, path, kind) for path in PATHS for kind in (PDF, XML)}
            (folder / "logo.svg").write_text(LOGO)
            changes = ("--legal-name", "Changed", "--document-color", "#ff0000", "--logo", "logo.svg")
            tell(folder, "account", "set", account["account_id"], *changes)
            client.call("PATCH", "/clients/1", {"name": "Changed"})
            assert {(path, kind): got(client, path, kind) for path in PATHS for kind in (PDF, XML)} == files
    return folder, files


def got(client, path, kind):
    answer = client.send("GET", f"{BASE_PATH}/{path}", Accept=kind)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.body


def files_of(folder, **settings):
    """Return the files of the invoice and the credit note as `retainer pdf` writes them."""
    found = {}
    for path in PATHS:
        kind = path.removesuffix("s/1")
        for media_type, options in ((PDF, []), (XML, ["--xml"])):
            tell(folder, "pdf", kind, 1, *options, "--output", "file", **settings)
            found[path, media_type] = (folder / "file").read_bytes()
    return found


def test_files_are_what_they_say(issued):
    _, files = issued
    assert all(content.startswith(b"%PDF-1.7") for (_, kind), content in files.items() if kind == PDF)
    assert all(content.startswith(b"<?xml") for (_, kind), content in files.items() if kind == XML)


def test_command_writes_what_the_server_sends(issued):
    folder, files = issued
    assert files_of(folder) == files


@only_full
def test_files_are_the_same_after_a_restore(issued, tmp_path):
    folder, files = issued
    tell(folder, "backup", "b.db.gz")
    tell(tmp_path, "restore", folder / "b.db.gz")
    assert files_of(tmp_path) == files


@only_full
def test_files_are_the_same_in_another_database(issued, postgresql_databases, tmp_path):
    folder, files = issued
    url = postgresql_databases.create()
    assert command(folder, "copy", "--to", url, "--json").status == 0
    assert files_of(folder, RETAINER_DATABASE_URL=url) == files
    back = f"sqlite:///{tmp_path / 'back.db'}"
    assert command(folder, "copy", "--from", url, "--to", back, "--json").status == 0
    assert files_of(folder, RETAINER_DATABASE_URL=back) == files
    postgresql_databases.discard(url)
