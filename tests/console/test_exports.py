"""Everything of an account from the console: a job makes a ZIP with the files of `retainer export`."""

import base64
import hashlib
import io
import json
import zipfile
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from retainer.api import ROUTES
from retainer.exchange import export
from retainer.identity import logos
from retainer.job_kinds import KINDS
from retainer.jobs import loop
from retainer.jobs.loop import Jobs
from retainer.outbound.leases import Places
from tests.console.visitor import admin_of
from tests.databases import any_database, each_database
from tests.documents.test_logo_files import png

START = "/console/settings/export"
LINES = [{"description": "Wörk", "unit_price": "99", "quantity": "1.5"}]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr("retainer.exchange.export.PART_RECORDS", 2)


@pytest.fixture
def filled(api, other_tenant):
    """An account with records, documents and a file, and another one."""
    with api.operating() as tx:
        logos.set_logo(tx, png())
    clients = [api.make("/clients", name=f"Ärzte {number}")["id"] for number in range(5)]
    api.make("/invoices", client_id=clients[0], status="sent", lines=LINES)
    api.make("/invoices", client_id=clients[1], lines=LINES)
    changed, void = (api.make("/invoices", client_id=clients[1], status="sent", lines=LINES) for _ in range(2))
    for notes in ("Thank you.", "Thanks."):
        api.patch(f"/invoices/{changed['id']}", {"notes": notes})
    api.patch(f"/invoices/{void['id']}", {"status": "void"})
    api.make("/quotes", client_id=clients[2], status="sent", lines=LINES)
    content = base64.b64encode(bytes(range(256)) * 300).decode()
    api.create("/files", record="invoice", record_id=changed["id"], name="../Auftrag ä.jsonl", content=content)
    other_tenant.make("/clients", name="Secret")
    return api


def do(api):
    reported = []
    Jobs(api.store, KINDS, lambda *found: reported.append(found)).run_once()
    assert reported == []


def begin(visitor, once="1"):
    return visitor.post(START, {"once": once}).location.partition("?")[0]


def unpacked(visitor, path):
    page = visitor.get(f"{path}/file")
    assert page.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(page.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len(names) == len(set(names))
        is_small = [entry.compress_size < entry.file_size for entry in archive.infolist() if "jsonl" in entry.filename]
        assert any(is_small), "texts are compressed"
        return {name: archive.read(name) for name in names}


def written(api, folder):
    """What the command writes of the same account."""
    folder.mkdir()
    with api.operating() as tx:
        tx.snapshot()
        export.export(tx, folder, ROUTES, [*export.FORMATS])
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@each_database
def test_the_zip_has_the_files_of_the_command_and_says_what_is_in_it(filled, visitor, tmp_path):
    path = begin(visitor)
    do(filled)
    assert f"{path}/file" in visitor.get(path).links
    found, expected = unpacked(visitor, path), written(filled, tmp_path / "files")
    manifests = [json.loads(each.pop("manifest.json")) for each in (found, expected)]
    assert found == expected
    assert b"Secret" not in b"".join(found.values())
    ours, theirs = manifests
    assert {each["path"]: (each["size"], each["sha256"]) for each in ours["files"]} == {
        name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in found.items()
    }
    for name in ("program", "account_id", "records", "documents", "columns"):
        assert ours[name] == theirs[name], name
    left_out = [{**each, "record": each["record"].lower()} for each in ours["left_out"]]
    assert left_out == theirs["left_out"] != []
    assert ours["began_at"] < ours["exported_at"] < theirs["exported_at"]


@any_database
def test_an_export_goes_on_after_a_kill_and_has_everything_once(filled, visitor, tmp_path):
    path = begin(visitor)
    kind, steps = KINDS["export"], 0
    one = kind._replace(make=lambda account, rows: kind.make(account, rows[:1]))
    while work := loop.DUE.claim(filled.store, Places(1, ()), loop.LEASE):
        assert steps < 200
        steps += loop.do_step(filled.store, {"export": one}, work[0])
        loop.release(filled.store, work[0])
    assert steps > 5
    found, expected = unpacked(visitor, path), written(filled, tmp_path / "files")
    del found["manifest.json"], expected["manifest.json"]
    assert found == expected


def test_a_stopped_export_continues_with_what_it_has(filled, visitor):
    path = begin(visitor)
    visitor.post(f"{path}/stop")
    do(filled)
    assert f"{path}/file" not in visitor.get(path).links
    visitor.post(f"{path}/continue")
    do(filled)
    assert "clients.csv" in unpacked(visitor, path)


def test_only_those_who_may_change_the_settings_export_and_take_the_file(filled, visitor, person, other_tenant):
    path = begin(visitor)
    do(filled)
    manager = person("manager")
    assert manager.post(START, {"once": "1"}).status == 403
    assert (manager.get(f"{path}/file").status, f"{path}/file" in manager.get(path).links) == (404, False)
    assert admin_of(other_tenant).get(f"{path}/file").status == 404
    assert "account exported" in visitor.get("/console/audit").text


def test_an_account_keeps_one_export_for_a_week_and_makes_one_at_a_time(filled, visitor):
    first = begin(visitor)
    refused = visitor.post(START, {"once": "2"})
    assert refused.location == "/console/jobs"
    assert "Another export is being made." in visitor.follow(refused).text
    do(filled)
    assert "clients.csv" in unpacked(visitor, first)
    second = begin(visitor, "3")
    assert visitor.get(f"{first}/file").status == 404
    do(filled)
    assert "clients.csv" in unpacked(visitor, second)
    with time_machine.travel(datetime.now(UTC) + timedelta(days=8)):
        loop.refresh(filled.store)
    assert filled.sql("SELECT count(*) FROM job_pieces") == [(0,)]


def test_people_read_how_many_records_an_export_has_and_not_its_parts(filled, visitor):
    path = begin(visitor)
    do(filled)
    exported = json.loads(unpacked(visitor, path)["manifest.json"])["records"]
    page, total = visitor.get(path), str(sum(exported.values()))
    terms = {each.text for each in page.all("dt")}
    assert ("Done" in terms, "Records" in terms) == (False, True)
    assert f"Records {total}" in page.text
    (done, _) = visitor.get("/console/jobs").all("td", "number")
    assert done.text == total


@each_database
def test_a_replaced_file_is_gone_at_once_and_deleted_in_short_turns(filled, visitor, monkeypatch):
    def pieces(path):
        job_id = int(path.rpartition("/")[2])
        ((found,),) = filled.sql("SELECT count(*) FROM job_pieces WHERE job_id = $1", job_id)
        return found

    first = begin(visitor)
    do(filled)
    stored = pieces(first)
    second = begin(visitor, "2")
    assert (visitor.get(f"{first}/file").status, pieces(first)) == (404, stored)
    with monkeypatch.context() as turns:
        for seconds in ("loop.DELETE_SECONDS", "step.TURN_SECONDS", "step.SECONDS"):
            turns.setattr(f"retainer.jobs.{seconds}", 0)
        loop.refresh(filled.store)
    assert pieces(first) == stored - 1
    do(filled)
    assert (pieces(first), pieces(second)) == (0, stored)
    assert "clients.csv" in unpacked(visitor, second)
    assert visitor.get(first).status == 200, "the job itself stays"
