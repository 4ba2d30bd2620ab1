"""Imports of invoices: they count as they were, their papers are those that came, and the series go on after them."""

import re
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
import pytest

from retainer.billing import files as billing_files
from retainer.doctor import documents, series, stored_files
from retainer.errors import Refusal
from retainer.exchange import plans
from retainer.exchange.columns import ColumnMapping
from retainer.exchange.importers import IMPORTERS
from retainer.identity.actors import absent_user
from retainer.jobs import jobs
from retainer.jobs.kinds import Job
from retainer.rollups import doctor
from retainer.schema.billing import invoices
from retainer.values.decoding import json_text
from tests.databases import each_database
from tests.exchange import invoice_files as files
from tests.exchange.test_imports import finish, undo

BERLIN = ZoneInfo("Europe/Berlin")
INVOICES = IMPORTERS["invoices"]
PAPER = files.pdf("a credit note")
PDF = {"Accept": "application/pdf"}


def planned(content, source="freshbooks", **answers):
    content = content.encode() if isinstance(content, str) else content
    return INVOICES.plan(content, INVOICES.sources[source], ColumnMapping(**{"currency": "EUR", **answers}), BERLIN)


def run(api, content, source="freshbooks", *, is_dry_run=False, **answers) -> Job:
    plan = planned(content, source, **answers)
    with api.store.begin(absent_user(api.store, api.admin_id), write=True) as tx:
        job_id = INVOICES.start(tx, plan.packed(), INVOICES.sources[source], source, is_dry_run=is_dry_run)
    return finish(api, job_id)


def refusals(api, job):
    with api.operating() as tx:
        return [(row.line, row.reason) for row in plans.refused_rows(tx, job)]


def by_number(api):
    return {each["number"]: each for each in api.get("/invoices", {"per_page": 100}).data}


def everything(api):
    """Return what an undone import must leave as it was, without ids."""
    kinds = ("clients", "invoices", "credit-notes", "payments")
    return {
        kind: [each["name" if kind == "clients" else "number"] for each in api.get(f"/{kind}").data] for kind in kinds
    }


def findings(api):
    with api.operating() as tx:
        return [*documents.find(tx), *series.find(tx), *stored_files.find(tx), *doctor.inspect(api.store, repair=False)]


@each_database
def test_invoices_are_imported_as_they_were_and_the_next_number_follows_them(api):
    trial = run(api, files.FRESHBOOKS, is_dry_run=True)
    assert by_number(api) == {}
    job = run(api, files.FRESHBOOKS)
    assert (trial.counts, trial.message.replace("would be ", "")) == (job.counts, job.message)
    assert job.counts == {
        "clients": 2,
        "invoices": 3,
        "minor_units_EUR": 99961,
        "minor_units_CAD": 560,
        "without_pdf": 3,
    }
    assert refusals(api, job) == [
        (6, "Is a draft. Only what was issued is imported."),
        (7, "Has a line of 120.00, but its net and its tax are 119.00."),
        (8, "Has a line of 120.00, but its net and its tax are 119.00."),
    ]
    found = by_number(api)
    first = api.get(f"/invoices/{found['INV-2021-0007']['id']}").data
    assert (first["status"], first["total"], first["balance_due"], first["is_imported"]) == (
        "sent",
        "892.51",
        "892.51",
        True,
    )
    assert first["reminders"] is False, "an import mails nobody"
    assert first["tax_breakdown"] == [{"tax_rate": "19", "taxable_amount": "750.00", "tax_amount": "142.51"}]
    assert [(line["description"], line["quantity"], line["amount"]) for line in first["lines"]] == [
        ("Concept\nFirst draft", "10", "650.00"),
        ("Travel (3 x 33.33)", "1", "100.00"),
    ]
    paid = api.get(f"/invoices/{found['INV-2021-0009']['id']}").data
    assert (paid["status"], paid["issue_date"], paid["balance_due"]) == ("paid", "2021-02-01", "0.00")
    assert [(each["amount"], each["paid_date"]) for each in paid["payments"]] == [("107.10", "2021-02-20")]
    canadian = found["0000010"]
    assert (canadian["currency"], canadian["tax_total"]) == ("CAD", "0.60")
    assert canadian["tax_breakdown"][0]["tax_rate"] == "12"
    assert findings(api) == []


@each_database
def test_the_pdfs_of_a_zip_are_the_papers_for_ever(api):
    mine, other = files.pdf("as it was"), files.pdf("another")
    content = files.packed(
        **{"export/invoices__csv": files.FRESHBOOKS, "export/Invoice_inv-2021-0007 (copy)__PDF": mine},
        **{"export/INV-2021-0012__pdf": other, "__MACOSX/._INV-2021-0009__pdf": b""},
    )
    job = run(api, content)
    assert (job.counts["pdfs"], job.counts["without_pdf"]) == (1, 2)
    found = by_number(api)
    path = f"/invoices/{found['INV-2021-0007']['id']}"
    assert api.get(path, headers=PDF).body == mine
    changed = api.patch(path, {"notes": "By phone", "due_date": "2021-03-31", "record_payment": {"amount": "92.51"}})
    assert (changed.data["status"], changed.data["document_version"]) == ("partially_paid", 1)
    assert api.get(path, headers=PDF).body == mine, "whatever becomes of it"
    for number, form in (("INV-2021-0007", "application/xml"), ("INV-2021-0009", "application/pdf")):
        answer = api.get(f"/invoices/{found[number]['id']}", headers={"Accept": form})
        assert (answer.status, b"that its old program has issued" in answer.body) == (406, True)
    assert findings(api) == []


@each_database
def test_payments_days_signs_and_numbers_are_taken_as_they_are(api):
    terms = {"early_payment_discount_percent": "2", "early_payment_discount_days": 365}
    known = api.make("/clients", name="BERGMANN", payment_terms_days=7, **terms)["id"]
    job = run(api, files.packed(invoices__csv=files.NINJA, payments__csv=files.PAYMENTS), "invoiceninja")
    assert (job.counts["invoices"], job.refused) == (3, 0)
    first, second, void = (by_number(api)[number] for number in ("1", "0001", "3"))
    assert (first["due_date"], first["purchase_order"], first["status"]) == ("2019-10-20", "PO 7", "partially_paid")
    payments = api.get(f"/invoices/{first['id']}").data["payments"]
    assert [(each["paid_date"], each["amount"]) for each in payments] == [
        ("2019-10-20", "2.01"),
        ("2019-11-28", "3.00"),
    ]
    assert (second["total"], void["status"], void["balance_due"]) == ("90.00", "void", "0.00")
    assert [line["amount"] for line in api.get(f"/invoices/{second['id']}").data["lines"]] == ["100.00", "-10.00"]
    assert (first["client_id"], job.counts.get("clients")) == (known, None)
    report = api.get("/reports/revenue-by-month", {"from": "2019-11-01", "to": "2019-11-30"}).data
    assert [(row["invoiced"], row["collected"]) for row in report["rows"]] == [("103.50", "3.00")]
    paid = api.patch(f"/invoices/{first['id']}", {"record_payment": {"early_payment_discount": True}})
    assert [*paid.errors] == ["record_payment.early_payment_discount"], "today's terms are not those of its paper"
    credited = api.post(f"/invoices/{second['id']}/credit-notes").data
    assert (credited["total"], api.get(f"/credit-notes/{credited['id']}", headers=PDF).status) == ("90.00", 200)
    assert findings(api) == []


@each_database
def test_credit_notes_of_a_zip_are_history_and_leave_the_balances_of_the_old_program(api):
    content = files.packed(
        invoices__csv=files.NINJA, payments__csv=files.PAYMENTS, credits__csv=files.CREDITS, **{"GS-1__pdf": PAPER}
    )
    before = everything(api)
    trial, job = run(api, content, "invoiceninja", is_dry_run=True), run(api, content, "invoiceninja")
    assert (job.counts["invoices"], job.counts["credit_notes"]) == (3, 2)
    assert (trial.counts["credit_notes"], trial.refused) == (2, 2)
    assert job.message.startswith("3 invoices over 123.50 EUR and 2 credit notes imported")
    with api.operating() as tx:
        assert [(row.name, row.message) for row in jobs.list_refusals(tx, job, 9)] == [
            ("credits.csv, line 4: GS-3", "Its invoice, 99, is not imported with it. Add that to the file."),
            ("credits.csv, line 5: GS-4", "Is 20, but only 10.00 of invoice 1 is left to credit."),
        ]
    assert [reason.partition(":")[0] for _, reason in refusals(api, job)] == [
        "credits.csv, line 4",
        "credits.csv, line 5",
    ]
    notes = {each["number"]: each for each in api.get("/credit-notes").data}
    first, second = notes["GS-1"], notes["GS-2"]
    shown = ("issue_date", "total", "applied_amount", "description", "is_imported")
    assert [first[name] for name in shown] == ["2019-11-29", "3.50", "3.50", "Scratched", True]
    one, other = (by_number(api)[number] for number in ("1", "0001"))
    assert (one["status"], one["balance_due"], one["amount_credited"]) == ("partially_paid", "4.99", "3.50")
    assert (other["status"], other["paid_at"][:10], second["applied_amount"]) == ("paid", "2019-11-29", "90.00")
    assert api.get(f"/credit-notes/{first['id']}", headers=PDF).body == PAPER
    for note, form in ((second, "application/pdf"), (first, "application/xml")):
        assert api.get(f"/credit-notes/{note['id']}", headers={"Accept": form}).status == 406
    assert findings(api) == []
    again = run(api, content, "invoiceninja")
    assert (again.counts["already_there"], again.counts.get("credit_notes")) == (5, None)
    undone = undo(api, job.id)
    assert (undone.counts["credit_notes_deleted"], undone.refused, everything(api)) == (2, 0, before)
    assert findings(api) == []


def test_a_payment_that_counts_what_was_credited_is_less_by_that():
    paid = files.PLAIN.rpartition("R-101")[0]
    notes = "Gutschrift;Rechnung;Datum;Betrag;Steuer\nG-1;R-100;31.01.2025;119,00;19,00\n"
    (row,) = planned(files.packed(a__csv=paid, Gutschriften__csv=notes), "csv").sums
    assert [row[name] for name in ("paid_in_file", "paid", "credited")] == ["1190.00", "1071.00", "119.00"]
    less = paid.replace(";1.190,00;10.02", ";1.071,00;10.02")
    assert planned(files.packed(a__csv=less, Gutschriften__csv=notes), "csv").sums == [
        row | {"paid_in_file": "1071.00"}
    ]
    assert b"add credits.csv to a ZIP" in planned(files.packed(a__csv=less), "csv").content
    exact = notes.replace("119,00;19,00", "0,001;")
    assert b"EUR has 2 decimal places" in planned(files.packed(a__csv=paid, credits__csv=exact), "csv").content


def test_a_list_that_leaves_its_days_open_follows_the_answer_for_the_file():
    payments = "Invoice Number,Amount,Date\n1,$5.01,11/12/2019\n"
    content = files.packed(a__csv=files.NINJA, payments__csv=payments)
    with pytest.raises(Refusal) as refused:
        planned(content, "invoiceninja")
    assert [*refused.value.members["errors"]] == ["day_order"]
    assert b'"2019-12-11"' in planned(content, "invoiceninja", day_order="day_first").content


def test_what_a_file_leaves_open_is_asked():
    with pytest.raises(Refusal) as unpaid:
        planned(files.NINJA, "invoiceninja")
    assert [*unpaid.value.members["errors"]] == ["paid_on"]
    (month,) = planned(files.NINJA, "invoiceninja", paid_on="due_date").sums
    both = files.packed(a__csv=files.NINJA, payments__csv=files.PAYMENTS.replace("$3.00", "$4.00"))
    assert planned(both, "invoiceninja").sums == [month | {"paid_in_file": "5.01", "paid": "6.01"}]
    with pytest.raises(Refusal) as undated:
        planned(files.packed(list__csv=files.PLAIN.replace("10.02.2025", "")), "csv")
    assert [*undated.value.members["errors"]] == ["paid_on"], "the day of an invoice in a ZIP is not that of a payment"
    with pytest.raises(Refusal) as unknown:
        planned(files.FRESHBOOKS.replace("sent", "mailed"))
    assert [*unknown.value.members["errors"]] == ["states"]
    assert (
        planned(files.FRESHBOOKS.replace("sent", "mailed"), states={"mailed": "open"}).sums
        == planned(files.FRESHBOOKS).sums
    )
    with pytest.raises(Refusal) as without:
        planned(files.PLAIN, "csv", currency=None)
    assert [*without.value.members["errors"]] == ["currency"]
    assert planned(files.PLAIN, "csv").sums[0] == {
        "month": "2025-01",
        "client": "Nordwind",
        "currency": "EUR",
        "invoices_in_file": 1,
        "invoices": 1,
        "total_in_file": "1190.00",
        "total": "1190.00",
        "paid_in_file": "1190.00",
        "paid": "1190.00",
    }
    untaxed = files.PLAIN.replace(";Tax;", ";Tax Amount 1;")
    for rate, net in (("19", "1000.00"), ("0", "1190.00")):
        plan = planned(untaxed, "csv", tax_rate=Decimal(rate))
        (line,) = msgspec.json.decode(plan.content.splitlines()[1])[4][5]
        assert (line[4], line[5], plan.sums[0]["total"]) == (rate, net, "1190.00")


@each_database
def test_the_series_goes_on_and_a_second_run_adds_nothing(api):
    year = api.today[:4]
    text = re.sub(r"\d\d\.\d\d\.2025", f"01.01.{year}", files.PLAIN).replace("R-100", f"INV-{year}-0041")
    job = run(api, text, "csv")
    assert (job.counts["next_number"], job.message.partition(". ")[2]) == (42, f"The next invoice is INV-{year}-0042.")
    own = api.make("/invoices", status="sent", lines=[{"description": "Design", "unit_price": "10"}])
    assert own["number"] == f"INV-{year}-0042"
    again = run(api, text, "csv")
    assert (again.counts.get("invoices"), again.counts["already_there"]) == (None, 2)
    other = run(api, text.replace("1.190,00", "1.191,00").replace("R-101", f"INV-{year}-0042"), "csv")
    first = by_number(api)[f"INV-{year}-0041"]
    assert [reason for _, reason in refusals(api, other)] == [
        f"number: Is that of invoice {first['id']}, which was imported with another total.",
        f"number: Is that of invoice {own['id']}, which was issued here.",
    ]
    assert findings(api) == []


@each_database
def test_an_import_is_undone_as_far_as_nothing_depends_on_its_invoices(api):
    job = run(api, files.packed(a__csv=files.FRESHBOOKS, **{"INV-2021-0007__pdf": files.pdf("x")}))
    found = by_number(api)
    api.patch(f"/invoices/{found['INV-2021-0007']['id']}", {"record_payment": {"amount": "1.00"}})
    undone = undo(api, job.id)
    assert (undone.counts["invoices_deleted"], undone.refused) == (2, 2), "an invoice and its client stay"
    with api.operating() as tx:
        messages = [row.message for row in jobs.list_refusals(tx, undone, 9)]
    assert messages[0] == "Stays: it has a payment that was recorded here. Remove the payment, and undo again."
    assert [*by_number(api)] == ["INV-2021-0007"]
    assert findings(api) == []
    assert run(api, files.FRESHBOOKS).counts["already_there"] == 1


@each_database
def test_it_is_sent_with_its_pdf_and_not_without(api):
    api.store.mail_from = "office@agency.example"
    run(api, files.packed(a__csv=files.FRESHBOOKS, **{"INV-2021-0007__pdf": files.pdf("as it was")}))
    found = by_number(api)
    to = {"to": ["ana@lindner.example"]}
    (message,) = api.post(f"/invoices/{found['INV-2021-0007']['id']}/send", to).data["messages"]
    assert [each["name"] for each in message["attachments"]] == ["INV-2021-0007.pdf"]
    refused = api.post(f"/invoices/{found['INV-2021-0009']['id']}/send", to)
    assert refused.errors == {"attach.0": [billing_files.IMPORTED_PDF]}


def test_hostile_archives_are_refused_before_they_are_unpacked():
    def reasons(content):
        with pytest.raises(Refusal) as refused:
            planned(content)
        return refused.value.members["errors"]["file"][0]

    assert "is packed as no real file is" in reasons(files.packed(a__csv=b"x" * (8 << 20)))
    assert "more than 5000 files" in reasons(files.packed(**{f"{n}__pdf": b"" for n in range(5001)}))
    assert "more than 5000 files" in reasons(b"PK\x03\x04" + b"PK\x01\x02" * 10_001), "its directory is not read"
    assert "Unpacks to more than" in reasons(files.packed(**{f"{n}__pdf": bytes(10 << 20) for n in range(11)}))
    assert "has a name of more than" in reasons(files.packed(**{"x" * 200 + "__pdf": b""}))
    assert "Is a damaged ZIP" in reasons(b"PK\x03\x04" + bytes(50))
    assert "cannot be unpacked" in reasons(
        files.packed(a__csv=files.FRESHBOOKS).replace(b"\x00\x08\x00", b"\x00\x63\x00")
    )
    assert "Is a ZIP without a CSV of invoices" in reasons(files.packed(x__pdf=files.pdf("x")))
    assert "a.csv: Line 2 cannot be divided into cells" in reasons(files.packed(a__csv='a,b\n"x,1\n'))
    assert "a.csv: Has no column for number, client" in reasons(files.packed(a__csv="a,b\nx,1\n"))
    assert "two files with the name a.csv" in reasons(files.packed(**{"x/a__csv": "a", "y/a__csv": "b"}))
    assert "Is a workbook" in reasons(files.packed(**{"[Content_Types]__xml": "", "xl/workbook__xml": ""}))
    assert "Has 2 tables" in reasons(files.packed(a__csv=files.FRESHBOOKS, b__csv=files.FRESHBOOKS))
    damaged = planned(files.packed(a__csv=files.FRESHBOOKS, **{"../../INV-2021-0009__pdf": b"no PDF"}))
    assert b"INV-2021-0009.pdf is no whole PDF." in damaged.content
    twice = {"a/INV-2021-0009__pdf": files.pdf("1"), "b/INV-2021-0009__pdf": files.pdf("2")}
    assert b"2 PDFs have its number." in planned(files.packed(a__csv=files.FRESHBOOKS, **twice)).content


def test_what_a_zip_has_beside_its_invoices_is_not_left_out_in_silence():
    papers = {f"other {letter}__pdf": files.pdf("x") for letter in "abcdefg"}
    strange = {"1 and 0001__pdf": files.pdf("x"), "notes__txt": "", "export.xlsx": b"PK"}
    payments = files.PAYMENTS + "Bergmann,17,$9.00,11/28/2019\n"
    content = files.packed(invoices__csv=files.NINJA, payments__csv=payments, **papers, **strange)
    names = ", ".join(f"other {letter}.pdf" for letter in "abcde")
    assert [*planned(content, "invoiceninja").notes] == [
        f"PDFs that have the number of no document, or of several, are left out: {names} and 3 more.",
        "Neither CSV nor PDF, and left out: notes.txt, export.xlsx.",
        "Payments of invoices that the file does not have are left out: 17.",
    ]


def test_doctor_finds_a_tax_beyond_the_rounding_of_its_lines(api):
    run(api, files.PLAIN, "csv")
    with api.operating() as tx:
        row = by_number(api)["R-101"]["id"]
        share = [{"tax_rate": "19", "taxable_amount": "500.00", "tax_amount": "95.02"}]
        tx.update_columns(invoices, row, {"tax_total": 9502, "total": 59502, "tax_breakdown": json_text(share)})
        assert [str(each) for each in documents.find(tx)]
