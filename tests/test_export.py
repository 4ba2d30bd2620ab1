"""`retainer export`: everything of one account, in files."""

import base64
import csv
import hashlib
import json
from decimal import Decimal

from testing.process import command, running, tell, with_database

from retainer.api import ROUTES
from retainer.exchange.export import export, kinds_of
from retainer.identity import logos
from tests.databases import each_database
from tests.documents.test_logo_files import png


def exported(api, folder, *formats):
    folder.mkdir()
    with api.operating() as tx:
        tx.snapshot()
        return export(tx, folder, ROUTES, list(formats))


def lines_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@each_database
def test_an_export_has_each_record_as_the_api_returns_it(api, other_tenant, tmp_path):
    client = api.make("/clients", name="Ärzte & Söhne", notes="=1+1", tax_rate="19")["id"]
    project = api.make("/projects", client_id=client, hourly_rate="110.50")["id"]
    api.make(f"/projects/{project}/milestones", name="Launch")
    api.make("/time-entries", client_id=client, project_id=project, user_id=api.member_id)
    lines = [
        {"description": "Work", "quantity": "-1.5", "unit_price": "10.25"},
        {"description": "More", "unit_price": "99"},
    ]
    invoice = api.make("/invoices", client_id=client, status="sent", lines=lines)["id"]
    api.patch(f"/invoices/{invoice}", {"record_payment": {"amount": "20.00", "paid_date": "2026-03-02"}})
    api.make(f"/tickets/{api.make('/tickets', client_id=client)['id']}/replies", body="On it")
    other_tenant.make("/clients", name="Secret")

    counts = exported(api, tmp_path / "files", "csv", "json").records
    found = {path.name: path.read_text("utf-8-sig") for path in (tmp_path / "files").iterdir() if path.is_file()}
    named = {f"{name}.{end}" for name in kinds_of(ROUTES) for end in ("csv", "jsonl")}
    assert found.keys() == {"account.json", "people.json", "manifest.json"} | named
    assert "Secret" not in "".join(found.values())
    for name in ("clients", "projects", "time_entries", "invoices", "tickets", "users"):
        records = lines_of(tmp_path / "files" / f"{name}.jsonl")
        path = f"/{name.replace('_', '-')}"
        assert records == [api.get(f"{path}/{each['id']}").data for each in records], name
        assert len(records) == counts[name] == api.get(path).json["meta"]["total"]
    assert [each["amount"] for each in lines_of(tmp_path / "files" / "payments.jsonl")] == ["20.00"]
    assert [each["name"] for each in lines_of(tmp_path / "files" / "milestones.jsonl")] == ["Launch"]
    assert [each["body"] for each in lines_of(tmp_path / "files" / "ticket_replies.jsonl")] == ["On it"]

    (row,) = csv.DictReader(found["invoices.csv"].splitlines())
    assert (row["total"], row["amount_paid"]) == (str(api.get(f"/invoices/{invoice}").data["total"]), "20.00")
    assert [line["amount"] for line in json.loads(row["lines"])] == ["-15.38", "99.00"]
    assert next(csv.DictReader(found["clients.csv"].splitlines()))["notes"] == "'=1+1"


def test_more_records_than_are_read_at_once_are_all_in_the_files(api, tmp_path, monkeypatch):
    monkeypatch.setattr("retainer.store.streams.RECORDS", 3)
    ids = [api.make("/tags", name=f"Tag {number}")["id"] for number in range(7)]
    exported(api, tmp_path / "files", "json")
    assert [each["id"] for each in lines_of(tmp_path / "files" / "tags.jsonl")] == ids


@each_database
def test_documents_and_files_are_exported_as_the_api_returns_them(api, other_tenant, tmp_path):
    lines = [{"description": "Work", "unit_price": "99"}]
    invoice = api.make("/invoices", status="sent", lines=lines)
    api.make("/invoices", lines=lines)
    quote = api.make("/quotes", status="sent", lines=lines)
    content = bytes(range(256)) * 300
    named = {"record": "invoice", "record_id": invoice["id"], "name": "../Auftrag ä.pdf"}
    file = api.create("/files", **named, content=base64.b64encode(content).decode()).data
    secret = other_tenant.create("/files", name="secret.pdf").data
    folder = tmp_path / "files"
    done = exported(api, folder, "json")
    drawn = {path.relative_to(folder / "documents").as_posix(): path for path in folder.glob("documents/*/*")}
    pdf = f"invoices/{invoice['id']}-{invoice['number']}.pdf"
    assert drawn.keys() == {pdf, f"quotes/{quote['id']}-{quote['number']}.pdf"}
    of_api = api.call("GET", f"/invoices/{invoice['id']}", headers={"Accept": "application/pdf"})
    assert drawn[pdf].read_bytes() == of_api.body
    assert [(each["record"], each["form"]) for each in done.left_out] == [(f"invoice {invoice['id']}", "xml")]
    assert "There is no e-invoice." in done.left_out[0]["reason"]
    (stored,) = (folder / "files").iterdir()
    assert (stored.name, stored.read_bytes()) == (f"{file['id']}-Auftrag-.pdf", content)
    assert secret["sha256"] not in (folder / "files.jsonl").read_text()


@each_database
def test_each_version_of_a_document_is_exported_as_it_was_issued(api, tmp_path):
    lines = [{"description": "Work", "unit_price": "99"}]
    changed, void = (api.make("/invoices", status="sent", lines=lines) for _ in range(2))
    api.patch(f"/invoices/{changed['id']}", {"notes": "Thank you."})
    api.patch(f"/invoices/{void['id']}", {"status": "void"})
    exported(api, tmp_path / "files", "json")
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "files" / "documents" / "invoices").iterdir()}
    first, second = (f"{each['id']}-{each['number']}" for each in (changed, void))
    assert drawn.keys() == {f"{first}.pdf", f"{first}.v1.pdf", f"{second}.pdf", f"{second}.v1.pdf"}
    for record, name in ((changed, first), (void, second)):
        of_api = api.get(f"/invoices/{record['id']}", {"version": 1}, headers={"Accept": "application/pdf"})
        assert drawn[f"{name}.v1.pdf"] == of_api.body != drawn[f"{name}.pdf"]


def test_an_export_has_the_settings_that_no_list_has(api, tmp_path):
    with api.operating() as tx:
        logos.set_logo(tx, png())
    api.set_user(api.member_id, {"hourly_rate": Decimal(90), "cost_rate": Decimal(40)})
    api.set_user(api.member_id, {"cost_rate": Decimal("45.5"), "cost_rate_from": "2026-02-01"})
    api.make("/clients")
    exported(api, tmp_path / "files", "json")
    account, people = (json.loads((tmp_path / "files" / f"{name}.json").read_text()) for name in ("account", "people"))
    assert (tmp_path / "files" / "logo.png").read_bytes() == png()
    assert account["next_numbers"]["next_client_number"] == 2
    (member,) = (person for person in people if person["id"] == api.member_id)
    assert (member["hourly_rate"], member["weekly_capacity_minutes"]) == ("90.00", 2400)
    assert member["cost_rates"] == [{"from": None, "amount": "40.00"}, {"from": "2026-02-01", "amount": "45.50"}]
    assert "password_hash" not in member


def test_the_manifest_counts_describes_and_proves_what_there_is(api, tmp_path):
    api.make("/clients")
    api.make("/files")
    done = exported(api, tmp_path / "files", "csv", "json")
    manifest = json.loads((tmp_path / "files" / "manifest.json").read_text("utf-8"))
    written = {path for path in (tmp_path / "files").rglob("*") if path.is_file() and path.name != "manifest.json"}
    assert {tmp_path / "files" / each["path"] for each in manifest["files"]} == written
    for each in manifest["files"]:
        content = (tmp_path / "files" / each["path"]).read_bytes()
        assert (each["size"], each["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert manifest["records"] == done.records == {**done.records, "clients": 2, "files": 1}
    (client, _) = lines_of(tmp_path / "files" / "clients.jsonl")
    assert manifest["columns"]["clients"].keys() == client.keys()
    assert "".join(manifest["columns"]["clients"].values()) != ""


def test_the_command_writes_a_new_private_folder_or_nothing(tmp_path):
    database = with_database(tmp_path / "data")
    made = tell(
        database,
        *("account", "create", "--name", "North", "--plan", "agency"),
        *("--admin-name", "Ana", "--admin-email", "ana@north.example"),
    )
    target = tmp_path / "files" / "north"
    told = tell(database, "export", made["account_id"], target)
    assert (told["folder"], told["files"]["users"], told["documents"]) == (str(target), 1, 0)
    assert (told["left_out"], told["message"]) == (0, None)
    assert json.loads((target / "account.json").read_text("utf-8"))["name"] == "North"
    assert {path.stat().st_mode & 0o077 for path in (target, *target.iterdir())} == {0}
    again = command(database, "export", made["account_id"], target)
    assert (again.status, "exists already. Name a new folder." in again.err) == (1, True)
    assert "Must be csv, json" in command(database, "export", made["account_id"], tmp_path / "b", "--format", "xml").err
    assert command(database, "export", 99, tmp_path / "c").status == 1
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"north"}
    assert {path.name for path in tmp_path.iterdir()} == {"data", "files"}


def test_the_command_names_what_it_leaves_out_and_where_the_reasons_are(tmp_path):
    with running(with_database(tmp_path), "--no-monitor") as server:
        agency = server.agency("North", "agency")
        with server.client(agency["key"]) as client:
            client_id = client.post("/clients", {"name": "Shop"}).json["data"]["id"]
            lines = [{"description": "Work", "unit_price": "99"}]
            client.post("/invoices", {"client_id": client_id, "status": "sent", "lines": lines})
        said = command(server.folder, "export", agency["account_id"], tmp_path / "north")
        told = server.tell("export", agency["account_id"], tmp_path / "again")
    assert said.status == 0, said
    message = said.out.splitlines()[-1]
    assert message == (
        "message: 1 PDF or XML of a document could not be made and is not in the files. "
        f"{tmp_path / 'north' / 'manifest.json'} names it with the reason, under left_out. All records are there."
    )
    assert "There is no e-invoice." in said.out
    (left_out,) = json.loads((tmp_path / "again" / "manifest.json").read_text("utf-8"))["left_out"]
    assert (told["left_out"], told["left_out_documents"]) == (1, [left_out])
    assert "manifest.json names it" in told["message"]
