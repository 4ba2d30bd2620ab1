"""The command `retainer import`, also killed in the middle."""

import csv
import json
import sqlite3
import tempfile

from testing.process import command, query, running, spawn, tell, until, with_database

from tests.exchange import files, invoice_files
from tests.length import only_full


def value(path, statement):
    ((found,),) = query(path, statement)
    return found


def opened(tmp_path):
    folder = with_database(tmp_path)
    with running(folder, "--no-monitor") as server:
        return folder, server.agency("North", "enterprise")["account_id"]


def test_it_imports_refuses_and_undoes(tmp_path):
    folder, account_id = opened(tmp_path)
    file = folder / "march.csv"
    file.write_text(files.HARVEST, encoding="utf-8")
    trial = tell(folder, "import", "harvest", file, "--account", account_id, "--dry-run")
    told = tell(folder, "import", "harvest", file, "--account", account_id)
    names = (
        "status",
        "people",
        "clients",
        "projects",
        "tasks",
        "time_entries",
        "minutes",
        "refused",
        "sums",
        "refusals",
    )
    assert [told[name] for name in names] == [trial[name] for name in names]
    assert (told["time_entries"], told["refusals"][0]["line"]) == (4, 6)
    assert told["sums"][0] == {"person": "Ana Ott", "month": "2026-03", "seconds_in_file": 82800, "minutes": 1380}
    assert trial["sums_imported"] == []
    assert [(row["person"], row["month"], row["minutes"]) for row in told["sums_imported"]] == [
        (row["person"], row["month"], row["minutes"]) for row in told["sums"]
    ]
    with (folder / "march.refused.csv").open(encoding="utf-8-sig", newline="") as written:
        ((_, *_), row) = csv.reader(written)
    assert row[:3] == ["6", "Has no time: a time entry has at least a minute.", "2026-03-05"]
    assert "'=1+1" in row, "no spreadsheet runs it"
    assert tell(folder, "import", "harvest", file, "--account", account_id)["already_there"] == 4
    assert tell(folder, "import", "undo", told["job"])["time_entries_deleted"] == 4
    assert value(folder / "data" / "retainer.db", "SELECT count(*) FROM time_entries") == 0


def test_a_file_that_leaves_something_open_is_refused_with_what_to_say(tmp_path):
    folder, account_id = opened(tmp_path)
    file, mapping = folder / "april.csv", folder / "mapping.json"
    file.write_text(files.CLOCKIFY.replace("03/14", "03/04"), encoding="utf-8")
    refused = command(folder, "import", "clockify", file, "--account", account_id)
    message = (
        "--mapping: The file does not tell whether 03/04/2026 is 3 April or 4 March. "
        'Write {"day_order": "day_first"} or {"day_order": "month_first"}.\n'
    )
    assert (refused.status, refused.err) == (1, message)
    mapping.write_text('{"day_order": "day_first"}', encoding="utf-8")
    arguments = ("--account", account_id, "--mapping", mapping, "--timezone", "Europe/Lisbon")
    assert tell(folder, "import", "clockify", file, *arguments)["time_entries"] == 1
    path = folder / "data" / "retainer.db"
    assert value(path, "SELECT started_at FROM time_entries") == "2026-04-03T09:23:00.000000Z"
    file.write_text('"', encoding="utf-8")
    refused = command(folder, "import", "clockify", file, "--account", account_id)
    assert refused.err.startswith("april.csv: Line 1 cannot be divided into cells")
    assert "Atlantis" in command(folder, "import", "toggl", file, "--account", account_id, "--timezone", "Atlantis").err


def test_an_import_that_fails_says_how_many_people_it_leaves_active(tmp_path):
    folder, account_id = opened(tmp_path)
    file, path = folder / "time.csv", folder / "data" / "retainer.db"
    rows = "".join(f"2026-03-02,1,Shop,{person},a\n" for person in ("Ana", "Bea"))
    file.write_text(f"date,hours,project,person,notes\n{rows}", encoding="utf-8")
    stick = "UPDATE jobs SET attempts = 99 WHERE id = NEW.id"
    with sqlite3.connect(path) as database:  # after its first step, it can't go on
        database.execute(f"CREATE TRIGGER stuck AFTER UPDATE ON jobs WHEN NEW.done > 0 BEGIN {stick}; END")
    told = command(folder, "import", "csv", file, "--account", account_id, "--json")
    job = json.loads(told.out)
    assert (told.status, job["status"]) == (0, "failed")
    either = f"retainer job continue {job['job']}, or retainer import undo {job['job']}"
    assert told.err == (
        "2 people whom this import has added are active, without a password, until it ends. "
        f"Either deactivates them: {either}.\n"
    )
    with sqlite3.connect(path) as database:
        database.execute("DROP TRIGGER stuck")
    assert command(folder, "import", "undo", job["job"]).err == ""
    assert value(path, "SELECT count(*) FROM users WHERE is_active = 1 AND name IN ('Ana', 'Bea')") == 0


def kill_once(folder, arguments, path, statement):
    """Run a command, and kill it as soon as a statement finds something, unless it has ended before."""
    with tempfile.TemporaryFile() as printed:
        process = spawn(folder, arguments, printed, printed)
        until(lambda: value(path, statement) or process.poll() is not None, statement)
        process.kill()
        process.wait()


def test_an_import_that_is_killed_ends_the_same_when_it_is_run_again(tmp_path):
    folder, account_id = opened(tmp_path)
    file, path = folder / "all.csv", folder / "data" / "retainer.db"
    rows = "".join(
        f"2026-0{month}-{day:02},0.1,Shop {day % 5},Ana,{n}\n"
        for month in (1, 3)
        for day in range(1, 29)
        for n in range(60)
    )
    file.write_text(f"date,hours,project,person,notes\n{rows}", encoding="utf-8")
    arguments = ("import", "csv", file, "--account", account_id)
    kill_once(folder, arguments, path, "SELECT count(*) FROM time_entries")
    before = value(path, "SELECT count(*) FROM time_entries")
    assert value(path, "SELECT done FROM jobs WHERE kind = 'import_time'") == before + 6, "one person, five projects"
    told = tell(folder, *arguments)
    assert (told["already_there"], told["time_entries"]) == (before, 3360 - before)


def test_an_import_of_clients_that_is_killed_continues_where_it_was(tmp_path):
    folder, account_id = opened(tmp_path)
    file, path = folder / "clients.csv", folder / "data" / "retainer.db"
    file.write_text("name,first name\n" + "".join(f"Client {n},Ana\n" for n in range(2000)), encoding="utf-8")
    arguments = ("import", "csv", file, "--account", account_id, "--kind", "clients")
    kill_once(folder, arguments, path, "SELECT count(*) FROM clients")
    before = value(path, "SELECT count(*) FROM clients")
    assert value(path, "SELECT done FROM jobs WHERE kind = 'import_records'") == before
    assert value(path, "SELECT count(*) FROM external_contacts") == before
    told = tell(folder, *arguments)
    assert (told["already_there"], told["clients"], told["external_contacts"]) == (before, 2000 - before, 2000 - before)
    if before < 2000:  # else the kill came late
        left = 2000 - before
        assert told["message"] == f"{left} clients and {left} external contacts imported from clients.csv."


@only_full
def test_documents_end_the_same_whenever_their_import_and_its_undoing_are_killed(tmp_path):
    folder, account_id = opened(tmp_path)
    file, path, paper = folder / "old.zip", folder / "data" / "retainer.db", invoice_files.pdf("x")
    rows = "".join(f"R-{n},Nordwind,2025-01-0{n % 9 + 1},119.00,19.00,open\n" for n in range(240))
    notes = "".join(f"G-{n},R-{n},2025-02-01,11.90\n" for n in range(160))
    texts = {
        "a__csv": f"number,client,date,total,tax,status\n{rows}",
        "credits__csv": f"number,invoice,date,total\n{notes}",
    }
    file.write_bytes(invoice_files.packed(**texts, **{f"R-{n}__pdf": paper for n in range(10)}, **{"G-1__pdf": paper}))
    arguments = ("import", "csv", file, "--account", account_id, "--kind", "invoices")
    kill_once(folder, arguments, path, "SELECT count(*) FROM invoices")
    kill_once(folder, arguments, path, "SELECT count(*) FROM credit_notes")
    told = tell(folder, *arguments)
    assert (told["status"], told["already_there"] + told["credit_notes"], told["refused"]) == ("done", 400, 0)
    assert value(path, "SELECT sum(balance_due) FROM invoices") == 240 * 11900 - 160 * 1190
    assert value(path, "SELECT count(*) FROM issued_documents") == 11
    imports = [
        job_id for (job_id,) in query(path, "SELECT id FROM jobs WHERE kind = 'import_invoices' ORDER BY id DESC")
    ]
    kill_once(folder, ("import", "undo", imports[0]), path, "SELECT 160 - count(*) FROM credit_notes")
    for job_id in imports:
        tell(folder, "import", "undo", job_id)
    for table in ("credit_notes", "invoices", "issued_documents", "clients", "credit_note_shares"):
        assert value(path, f"SELECT count(*) FROM {table}") == 0, table


def test_each_source_is_read_by_the_command_with_all_of_its_options(tmp_path):
    folder, account_id = opened(tmp_path)
    mapping = folder / "mapping.json"
    mapping.write_text('{"yes": ["ok"]}', encoding="utf-8")
    texts = {"harvest": files.HARVEST, "toggl": files.TOGGL, "clockify": files.CLOCKIFY, "kimai": files.KIMAI}
    for name, text in {**texts, "solidtime": files.SOLIDTIME, "csv": files.OWN.replace("job", "project")}.items():
        (folder / name).write_text(text, encoding="utf-8")
    given = ("--account", account_id, "--dry-run", "--timezone", "Europe/Berlin", "--mapping", mapping)
    told = [
        tell(folder, "import", "harvest", folder / "harvest", *given),
        tell(folder, "import", "toggl", folder / "toggl", *given),
        tell(folder, "import", "clockify", folder / "clockify", *given),
        tell(folder, "import", "kimai", folder / "kimai", *given),
        tell(folder, "import", "solidtime", folder / "solidtime", *given),
        tell(folder, "import", "csv", folder / "csv", *given),
    ]
    assert [each["time_entries"] for each in told] == [4, 2, 1, 1, 1, 1]
    assert value(folder / "data" / "retainer.db", "SELECT count(*) FROM time_entries") == 0


def test_invoices_are_imported_by_the_command_and_refused_with_all_of_their_rows(tmp_path):
    folder, account_id = opened(tmp_path)
    mapping = folder / "mapping.json"
    mapping.write_text('{"paid_on": "due_date", "currency": "USD"}', encoding="utf-8")
    packed = invoice_files.packed(a__csv=invoice_files.FRESHBOOKS, **{"INV-2021-0007__pdf": invoice_files.pdf("x")})
    (folder / "old.zip").write_bytes(packed)
    (folder / "ninja.csv").write_text(invoice_files.NINJA, encoding="utf-8")
    given = ("--account", account_id, "--dry-run", "--timezone", "Europe/Berlin", "--mapping", mapping)
    told = [
        tell(folder, "import", "invoiceninja", folder / "ninja.csv", *given),
        tell(folder, "import", "freshbooks", folder / "old.zip", *given),
        tell(folder, "import", "freshbooks", folder / "old.zip", "--account", account_id),
    ]
    assert [(each["invoices"], each["refused"]) for each in told] == [(3, 0), (3, 2), (3, 2)]
    assert (told[2]["pdfs"], told[2]["sums"][2]["total"]) == (1, "107.10")
    fields = ("month", "client", "currency", "invoices", "total", "paid")
    assert [[row[name] for name in fields] for row in told[2]["sums_imported"]] == [
        [row[name] for name in fields] for row in told[2]["sums"] if row["invoices"]
    ]
    with (folder / "old.refused.csv").open(encoding="utf-8-sig", newline="") as written:
        assert [row[0] for row in csv.reader(written)] == ["Line", "6", "7", "8"]
    assert tell(folder, "import", "undo", told[2]["job"])["invoices_deleted"] == 3
    assert value(folder / "data" / "retainer.db", "SELECT count(*) FROM issued_documents") == 0
