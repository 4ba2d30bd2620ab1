"""Imports of clients, contacts and projects: each once, and a refused row with every reason at once."""

from contextlib import suppress

import pytest

from retainer.errors import Refusal
from retainer.exchange import record_imports
from retainer.identity.actors import absent_user
from retainer.jobs.kinds import Job
from retainer.schema import jobs as schema
from retainer.store.tx import RolledBack
from tests.contract.cases import statements_of
from tests.databases import each_database
from tests.exchange.test_imports import everything, refusals, run, start, undo

FRESHBOOKS = """\
Organization,First Name,Last Name,Email,Phone,Street,City,Province/State,Country,Postal Code,Notes
Nordwind GmbH,Ana,Ott,ana@nordwind.example,030 1,Hafenstr. 1,Bremen,,Germany,28195,Pays late
Nordwind GmbH,Ben,Lenz,ben@nordwind.example,,Hafenstr. 1,Bremen,,Germany,28195,
,Cara,Moll,cara@moll.example,,Weg 2,Wien,,Österreich,1010,
"""
GERMAN = """\
Firma;Straße;PLZ;Ort;Land;Stundensatz (EUR);Zahlungsziel;USt-IdNr.;Status;Sprache
Südwind;Gasse 3;01069;Dresden;DE;1.098,50;14 Tage;DE123456789;aktiv;Deutsch
Nordwind GmbH;;;;Atlantis;98;lang;;verloren;
südwind;Gasse 4;;;;;;;;
"""
CONTACTS = """\
Client,Title,First Name,Last Name,Email,Office Phone,Mobile Phone,Fax
Südwind,Head,Dora,Veit,dora@suedwind.example,1,2,3
Südwind,,Dora,,not an address,,,
Südwind,,Emil,Veit,,,,
,,Falk,,falk@suedwind.example,,,
"""
PROJECTS = """\
Client,Project,Project Code,Start Date,End Date,Project Notes,Budget hours,Project Manager
Südwind,Shop,S-1,2026-03-01,2026-04-30,Relaunch,"12,5",Admin
Westwind,Shop,S-2,2026-05-01,2026-04-30,,,Nobody
,Internal,,,,,1:30,
"""


def reasons(api, job):
    return {line: reason for line, _, reason in refusals(api, job)}


@each_database
def test_clients_come_with_their_people_once_and_can_be_undone(api):
    before = everything(api)
    job = run(api, FRESHBOOKS, "csv", "clients")
    assert (job.counts, job.refused) == ({"clients": 2, "external_contacts": 3}, 0)
    assert job.message == "2 clients and 3 external contacts imported from csv.csv."
    moll, nordwind = api.get("/clients", {"sort": "name"}).data
    assert (moll["name"], moll["country"], moll["city"], nordwind["country"]) == ("Cara Moll", "AT", "Wien", "DE")
    contacts = api.get("/external-contacts", {"client_id": nordwind["id"]}).data
    assert [(each["name"], each["email"], each["is_primary"]) for each in contacts] == [
        ("Ben Lenz", "ben@nordwind.example", False),
        ("Ana Ott", "ana@nordwind.example", True),
    ]
    assert run(api, FRESHBOOKS, "csv", "clients").counts == {"already_there": 3}
    undone = undo(api, job.id)
    assert (undone.counts, undone.refused) == ({"external_contacts_deleted": 3, "clients_deleted": 2}, 0)
    assert everything(api) == before


def test_a_row_is_refused_with_all_of_its_reasons_and_the_others_are_imported(api):
    trial = run(api, GERMAN, "csv", "clients", is_dry_run=True)
    assert api.get("/clients").data == []
    job = run(api, GERMAN, "csv", "clients")
    assert (job.counts, job.refused) == (trial.counts, trial.refused) == ({"clients": 1}, 2)
    (client,) = api.get("/clients").data
    shown = ("hourly_rate", "payment_terms_days", "postal_code", "language", "status", "vat_number")
    assert [client[name] for name in shown] == ["1098.50", 14, "01069", "de", "active", "DE123456789"]
    found = reasons(api, job)
    assert found[4] == "Names the same record as line 2. Correct one of them, or give each an external_id."
    assert "country: “Atlantis” is not a country. Write its code, like DE." in found[3]
    assert "payment_terms_days: Must be a whole number from 0 to 365" in found[3]
    assert "status: Must be one of: prospect, active, archived" in found[3]


@each_database
def test_contacts_and_projects_find_or_make_their_clients(api):
    api.make("/clients", name="SÜDWIND")
    job = run(api, CONTACTS, "csv", "external-contacts")
    assert (job.counts, job.refused) == ({"external_contacts": 2}, 2)
    found = reasons(api, job)
    assert found[3].startswith("email: Must be an email address")
    assert found[5] == "client_id: Is required."
    veits = api.get("/external-contacts", {"sort": "-email"}).data
    assert [(each["name"], each["job_title"], each["mobile"]) for each in veits] == [
        ("Dora Veit", "Head", "2"),
        ("Emil Veit", None, None),
    ]
    assert run(api, CONTACTS, "csv", "external-contacts").counts == {"already_there": 2}
    text = PROJECTS.replace("Admin", api.get(f"/users/{api.admin_id}").data["email"].upper())
    trial = run(api, text, "csv", "projects", is_dry_run=True)
    job = run(api, text, "csv", "projects")
    assert job.counts == trial.counts == {"clients": 1, "projects": 2}
    found = reasons(api, job)
    assert "manager_id: No active user is called “Nobody”. Add this person first." in found[3]
    assert "due_date: " in found[3]
    internal, shop = api.get("/projects", {"sort": "name"}).data
    assert (shop["budget_minutes"], shop["start_date"], shop["manager_id"]) == (750, "2026-03-01", api.admin_id)
    assert (internal["budget_minutes"], internal["client_id"], shop["code"]) == (90, None, "S-1")
    assert run(api, text, "csv", "projects").counts == {"already_there": 2}


def test_a_mapping_names_columns_and_leaves_others_out(api):
    job = run(api, "Wer,Status\nNordwind,archived\n", "csv", "clients", columns={"name": "wer", "status": ""})
    assert job.counts == {"clients": 1}
    assert api.get("/clients").data[0]["status"] == "active"
    with pytest.raises(Refusal) as refused:
        run(api, "name,x\nNordwind,1\n", "csv", "clients", columns={"vat_no": "x"})
    assert "Did you mean vat_number?" in refused.value.members["errors"]["columns.vat_no"][0]


def test_an_external_id_tells_records_of_one_name_apart(api):
    api.make("/clients", name="Nordwind", external_id="1")
    job = run(api, "name,external_id\nNordwind,1\nNordwind,2\nNordwind,2\n", "csv", "clients")
    assert job.counts == {"already_there": 1, "clients": 1}
    assert list(reasons(api, job)) == [4]
    assert run(api, "name\nNordwind\n", "csv", "clients").counts == {"already_there": 1}


@each_database
def test_what_a_refused_row_has_rolled_back_is_not_taken_as_made(api):
    text = "name,first name,country\nNordwind,Ana,DE\nNordwind,Ben,DE\nSouth,,Atlantis\nNordwind,Cara,DE\n"
    job = run(api, text, "csv", "clients")
    assert (job.counts, job.refused) == ({"clients": 1, "external_contacts": 3}, 1)
    assert {each["client_id"] for each in api.get("/external-contacts").data} == {api.get("/clients").data[0]["id"]}


@each_database
def test_a_record_with_the_id_of_one_that_was_rolled_back_is_not_taken_for_it(api):
    job_id = start(api, "Client,First Name,Email\nNordwind,Ana,ana@nordwind.example\n", "csv", "external-contacts")
    actor = absent_user(api.store, api.admin_id)
    with api.store.begin(actor, write=False) as tx:
        tx.snapshot()
        job = tx.get(schema.jobs, job_id, Job)
        client, contact = record_imports.next_rows(tx, job, 10)
    with suppress(RolledBack), api.store.begin(actor, write=True) as tx:
        record_imports.write(tx, job, client)
        raise RolledBack
    api.make("/clients", name="Another")  # it has the id now on SQLite
    with api.store.begin(actor, write=True) as tx:
        record_imports.write(tx, job, client)
        record_imports.write(tx, job, contact)
    clients = {each["id"]: each["name"] for each in api.get("/clients").data}
    assert sorted(clients.values()) == ["Another", "Nordwind"]
    assert [clients[each["client_id"]] for each in api.get("/external-contacts").data] == ["Nordwind"]


def test_a_step_looks_up_the_records_of_all_of_its_rows_at_once(api):
    rows = "".join(f"Client {number},Ana,a{number}@x.example\n" for number in range(150))
    run(api, f"name,first name,email\n{rows}", "csv", "clients")
    with statements_of(api) as seen:
        again = run(api, f"name,first name,email\n{rows}", "csv", "clients")
    assert again.counts == {"already_there": 150}
    assert len(seen) < 60, "and not two for each row"
