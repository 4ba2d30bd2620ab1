"""`retainer export`: everything of one account, in files."""

import csv
import json

from testing.process import command, tell, with_database

from retainer.cli.exports import kinds, write
from tests.databases import each_database


def exported(api, folder, *formats):
    folder.mkdir()
    with api.operating() as tx:
        return write(tx, folder, list(formats))


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

    counts = exported(api, tmp_path / "files", "csv", "json")
    found = {path.name: path.read_text("utf-8-sig") for path in (tmp_path / "files").iterdir()}
    assert found.keys() == {"account.json"} | {f"{name}.{end}" for name in kinds() for end in ("csv", "json")}
    assert "Secret" not in "".join(found.values())
    for name in ("clients", "projects", "time_entries", "invoices", "tickets", "users"):
        records = json.loads(found[f"{name}.json"])
        path = f"/{name.replace('_', '-')}"
        assert records == [api.get(f"{path}/{each['id']}").data for each in records], name
        assert len(records) == counts[name] == api.get(path).json["meta"]["total"]
    assert [each["amount"] for each in json.loads(found["payments.json"])] == ["20.00"]
    assert [each["name"] for each in json.loads(found["milestones.json"])] == ["Launch"]
    assert [each["body"] for each in json.loads(found["ticket_replies.json"])] == ["On it"]

    (row,) = csv.DictReader(found["invoices.csv"].splitlines())
    assert (row["total"], row["amount_paid"]) == (str(api.get(f"/invoices/{invoice}").data["total"]), "20.00")
    assert [line["amount"] for line in json.loads(row["lines"])] == ["-15.38", "99.00"]
    assert next(csv.DictReader(found["clients.csv"].splitlines()))["notes"] == "'=1+1"


def test_more_records_than_are_read_at_once_are_all_in_the_files(api, tmp_path, monkeypatch):
    monkeypatch.setattr("retainer.store.streams.RECORDS", 3)
    ids = [api.make("/tags", name=f"Tag {number}")["id"] for number in range(7)]
    exported(api, tmp_path / "files", "json")
    assert [each["id"] for each in json.loads((tmp_path / "files" / "tags.json").read_text())] == ids


def test_the_command_writes_a_new_private_folder_or_nothing(tmp_path):
    database = with_database(tmp_path / "data")
    made = tell(
        database,
        *("account", "create", "--name", "North", "--plan", "agency"),
        *("--admin-name", "Ana", "--admin-email", "ana@north.example"),
    )
    target = tmp_path / "files" / "north"
    told = tell(database, "export", made["account_id"], target)
    assert (told["folder"], told["files"]["users"]) == (str(target), 1)
    assert json.loads((target / "account.json").read_text("utf-8"))["name"] == "North"
    assert {path.stat().st_mode & 0o077 for path in (target, *target.iterdir())} == {0}
    again = command(database, "export", made["account_id"], target)
    assert (again.status, "exists already. Name a new folder." in again.err) == (1, True)
    assert "Must be csv, json" in command(database, "export", made["account_id"], tmp_path / "b", "--format", "xml").err
    assert command(database, "export", 99, tmp_path / "c").status == 1
    assert {path.name for path in (tmp_path / "files").iterdir()} == {"north"}
    assert {path.name for path in tmp_path.iterdir()} == {"data", "files"}
