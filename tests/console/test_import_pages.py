"""The pages of an import: upload, columns, preview, trial, import, refused rows and undo, without a script."""

import pytest

from retainer.exchange import uploads
from retainer.job_kinds import KINDS
from retainer.jobs import loop
from retainer.outbound.leases import Places
from tests.databases import each_database
from tests.exchange import files, invoice_files
from tests.exchange.test_records import GERMAN

STRANGE = "Wer,Wo,Extra\nNordwind,Bremen,1\n"


def send(visitor, text, what="clients csv", name="list.csv"):
    return visitor.upload("/console/import", text.encode(), name="file", file_name=name, what=what)


def confirm(visitor, sent, **fields):
    """Send the form of the columns, and return the page of its job once that has ended."""
    page = visitor.submit(sent.location, **fields)
    assert page.all("progress"), page.text
    return finish(visitor)


def finish(visitor):
    """Do the newest job, and return its page."""
    ((job_id, account_id),) = visitor.sql("SELECT id, account_id FROM jobs ORDER BY id DESC LIMIT 1")
    loop.run_to_end(visitor.app.store, KINDS, account_id, job_id, lambda _: None)
    return visitor.get(f"/console/jobs/{job_id}")


@each_database
def test_a_file_is_checked_tried_imported_and_undone(api, visitor):
    visitor.sql = api.sql
    sent = send(visitor, GERMAN)
    page = visitor.get(sent.location)
    assert (
        "3 rows, of which at least 2 can't be imported. “Try without saving” checks each row by all rules." in page.text
    )
    assert "Südwind" in page.text
    assert "1098.50" in page.text
    assert "Names the same record as line 2" in page.text
    chosen = {
        each["id"]: option.text for each in page.all("select") for option in each.all("option") if "selected" in option
    }
    assert (chosen["column_name"], chosen["column_status"], chosen["column_phone"]) == ("Firma", "Status", "Leave out")
    tried = confirm(visitor, sent, step="try")
    assert "Nothing of it is kept." in tried.text
    assert api.get("/clients").data == []
    (button,) = [each["action"] for each in tried.all("form") if each["action"].endswith("/import")]
    assert visitor.post(button).status == 303
    done = finish(visitor)
    assert "1 client imported from list.csv." in done.text
    assert "“Payment terms”: Must be a whole number from 0 to 365. “Country”: “Atlantis” is not a country." in done.text
    (link,) = {link for link in done.links if link.endswith("/refused")}
    assert "Line,Reason,Firma" in visitor.get(link).html.replace('"', "").replace(";", ",")
    assert "Atlantis" in visitor.get(link).html
    (undo,) = {link for link in done.links if link.endswith("/undo")}
    assert "1 record that this import has made will be deleted." in visitor.get(undo).text
    assert visitor.submit(undo).all("progress")
    undone = finish(visitor)
    assert "Clients deleted 1" in undone.text
    assert api.get("/clients").data == []


def test_an_import_is_continued_only_by_a_role_that_may_import(api, visitor, person):
    visitor.sql = api.sql
    visitor.submit(send(visitor, "Name\nNordwind\n").location)
    ((job_id,),) = api.sql("SELECT max(id) FROM jobs")
    job = f"/console/jobs/{job_id}"
    visitor.post(f"{job}/stop")
    manager = person("manager")
    assert manager.get(job).status == 200
    assert f"{job}/continue" not in [form["action"] for form in manager.get(job).all("form")]
    assert manager.post(f"{job}/continue").status == 404
    assert visitor.post(f"{job}/continue").status == 303
    assert "1 client imported" in finish(visitor).text


@each_database
@pytest.mark.parametrize("end", ["continued", "undone"])
def test_a_stopped_import_says_how_many_people_it_leaves_active(api, visitor, end):
    visitor.sql = api.sql
    rows = "".join(f"2026-03-02,1,Shop,{person},a\n" for person in ("Ana", "Bea"))
    visitor.submit(send(visitor, f"date,hours,project,person,notes\n{rows}", "time csv").location)
    (work,) = loop.DUE.claim(api.store, Places(1, ()), loop.LEASE)
    assert loop.do_step(api.store, KINDS, work)
    ((job_id,),) = api.sql("SELECT max(id) FROM jobs")
    page = f"/console/jobs/{job_id}"
    assert "has added" not in visitor.get(page).text, "it runs"
    visitor.post(f"{page}/stop")
    assert (
        "2 people whom this import has added are active, without a password, until it ends. Continue or undo the "
        "import: either deactivates them." in visitor.get(page).text
    )
    api.set_user(next(user["id"] for user in api.get("/users").data if user["name"] == "Bea"), {"is_active": False})
    assert "1 person whom this import has added is active," in visitor.get(page).text
    if end == "continued":
        visitor.post(f"{page}/continue")
    else:
        visitor.submit(f"{page}/undo")
    finish(visitor)
    assert "has added" not in visitor.get(page).text
    assert {user["is_active"] for user in api.get("/users").data if user["name"] in {"Ana", "Bea"}} == {False}


def test_columns_are_chosen_where_headings_say_nothing(api, visitor):
    visitor.sql = api.sql
    sent = send(visitor, STRANGE)
    page = visitor.get(sent.location)
    assert "Has no column for name. Its headings seem to be: Wer, Wo, Extra." in page.text
    refused = visitor.submit(sent.location)
    assert (refused.status, refused.error_of("column_name")) == (422, "Choose a name.")
    again = visitor.submit(sent.location, column_name="0", step="check")
    assert "First rows, as they are read" in again.text
    assert "Columns that are not imported: " in again.text
    confirm(visitor, sent, column_name="0", column_city="1", column_notes="")
    (client,) = api.get("/clients").data
    assert (client["name"], client["city"]) == ("Nordwind", "Bremen")
    assert visitor.get(sent.location).status == 404, "the file is deleted once it is imported"


def test_the_first_rows_of_time_say_what_will_be_billed(visitor):
    told = (("02", "yes,no"), ("03", "no,"), ("04", "yes,yes"))
    rows = "".join(f"2026-03-{day},1:30,Optik,Shop,Ana,{answers}\n" for day, answers in told)
    sent = send(visitor, f"date,duration,client,project,person,billable,invoiced\n{rows}", "time csv")
    page = visitor.get(sent.location)
    (table,) = [each for each in page.all("table") if "Billed elsewhere" in each.text]
    first, *shown = [[cell.text for cell in row.all("th", "") + row.all("td", "")] for row in table.all("tr")]
    places = [first.index(label) for label in ("Day", "Billable", "Billed elsewhere")]
    assert [[row[place] for place in places] for row in shown] == [
        ["2026-03-02", "Yes", ""],
        ["2026-03-03", "No", ""],
        ["2026-03-04", "Yes", "Yes"],
    ]


def test_what_a_file_of_time_leaves_open_is_asked_beside_its_field(api, visitor):
    visitor.sql = api.sql
    sent = send(visitor, files.CLOCKIFY.replace("03/14", "03/04").replace('"Yes"', '"Jein"'), "time clockify")
    page = visitor.get(sent.location)
    assert "The file does not tell whether 03/04/2026 is 3 April or 4 March." in page.text
    refused = visitor.submit(sent.location)
    assert "Choose." in refused.error_of("day_order")
    assert "Jein" in refused.error_of("column_billable")
    answers = {"day_order": "day_first", "yes": "jein", "timezone": "Europe/Lisbon"}
    page = visitor.submit(sent.location, step="check", **answers)
    assert "Sums of the file" in page.text
    assert "Ana Ott 2026-04 1:00:01 1:00" in page.text
    done = confirm(visitor, sent)
    assert "1 time entry imported" in done.text
    assert "Ana Ott 2026-04 1:00:01 1:00" in done.text
    assert "Sums of what was imported Person Month Time entries Time (h) Ana Ott 2026-04 1 1:00" in done.text
    (entry,) = api.get("/time-entries").data
    assert entry["started_at"] == "2026-04-03T09:23:00.000000Z"


def test_invoices_are_imported_from_a_zip_as_they_were_and_their_questions_are_asked(api, visitor):
    visitor.sql = api.sql
    mine = invoice_files.pdf("as it was")
    table = invoice_files.PLAIN.replace("offen", "gemahnt").replace("bezahlt;1.190", "paid;1.190")
    content = invoice_files.packed(list__csv=table.replace("10.02.2025", ""), **{"Rechnung R-100__pdf": mine})
    sent = visitor.upload("/console/import", content, name="file", file_name="old.zip", what="invoices csv")
    page = visitor.get(sent.location)
    assert "The file does not say the currency of the amounts." in page.text
    page = visitor.submit(sent.location, step="check", currency="eur")
    assert "Say what “gemahnt” means: a draft, open, paid or void. Add it to the other words below." in page.text
    assert "The file does not say when all invoices were paid." in page.text
    refused = visitor.submit(sent.location, words_open="gemahnt, offen", tax_rate="190", paid_on="due_date")
    assert refused.error_of("tax_rate") == "Must be from 0 to 100 percent, with at most 3 decimal places."
    answers = {"words_open": "gemahnt, offen", "tax_rate": "", "paid_on": "due_date"}
    page = visitor.submit(sent.location, step="check", **answers)
    assert ("2 rows." in page.text, "R-100" in page.text) == (True, True)
    assert "2025-01 Nordwind EUR 1 1 1190.00 1190.00 1190.00 1190.00" in page.text
    done = confirm(visitor, sent)
    assert "2 invoices over 1785.01 EUR imported from old.zip." in done.text
    found = {each["number"]: each for each in api.get("/invoices").data}
    assert (found["R-100"]["status"], found["R-101"]["balance_due"]) == ("paid", "595.01")
    assert api.get(f"/invoices/{found['R-100']['id']}", headers={"Accept": "application/pdf"}).body == mine


def test_an_upload_is_that_of_its_admin_one_at_a_time_and_kept_for_a_day(api, visitor, person):
    visitor.sql = api.sql
    first, second = send(visitor, GERMAN), send(visitor, GERMAN)
    assert visitor.get(first.location).status == 404, "a new file takes the place of the one before"
    assert "No jobs yet." in visitor.get("/console/jobs").text
    job_id = second.location.rpartition("/")[2]
    assert visitor.get(f"/console/jobs/{job_id}").status == 404
    assert person("admin").get(second.location).status == 404
    manager = person("manager")
    assert [manager.get(path).status for path in ("/console/import", second.location)] == [403, 403]
    assert (
        manager.upload("/console/import", b"name\nx\n", name="file", file_name="a.csv", what="clients csv").status
        == 403
    )
    loop.refresh(api.store)
    assert visitor.get(second.location).status == 200
    api.sql("UPDATE jobs SET ended_at = '2026-01-01T00:00:00.000000Z' WHERE id = $1", int(job_id))
    loop.refresh(api.store)
    assert visitor.get(second.location).status == 404


def test_a_file_is_read_apart_from_transactions_and_within_limits(api, visitor, monkeypatch):
    pdf = send(visitor, "%PDF-1.7 Clients")
    assert (pdf.status, pdf.error_of("file")) == (422, "Is a PDF. Export the data as CSV.")
    monkeypatch.setattr(uploads, "SECONDS", 0.01)
    rows = "".join(f"Client {number}\n" for number in range(20_000))
    assert "Takes too much time or memory to read." in send(visitor, f"name\n{rows}").error_of("file")
    assert send(visitor, GERMAN, "clients toggl").status == 422
    assert "Line 1 has a zero byte" in send(visitor, "\0").error_of("file")
