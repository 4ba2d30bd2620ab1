"""CSV files: numbers stay numbers, and no spreadsheet runs a text."""

import csv
import io
from decimal import Decimal

import pytest
import time_machine

from retainer.console.spreadsheets import dialect_of
from retainer.web.csv_files import Dialect, csv_text
from retainer.web.pages import csv_response


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1",
        "\u00a0=1",
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20A1",
        '=A("x")',
        "\u200b=1",
        "\x85@A1",
        "\u2028+1",
    ],
)
def test_a_text_that_begins_like_a_formula_gets_an_apostrophe(text):
    (row,) = csv.reader(io.StringIO(csv_text([text], [])[1:], newline=""))
    assert row == [f"'{text}"]


def test_numbers_are_not_quoted_and_text_is():
    rows = [["Optik, Weiß", -5, Decimal("-1250.50"), None, 'a "b"\nc']]
    assert csv_text(["Client", "Days", "Amount", "", ""], rows) == (
        '\ufeff"Client","Days","Amount","",""\r\n"Optik, Weiß",-5,-1250.50,"","a ""b""\nc"\r\n'
    )


def test_a_file_is_a_download_that_no_browser_renders():
    response = csv_response("revenue", ["Client"], [["Optik"]], ("cache-control", "no-store"))
    headers = dict(response.headers)
    assert headers["content-type"] == "text/csv; charset=utf-8"
    assert headers["content-disposition"] == 'attachment; filename="revenue.csv"'
    assert headers["cache-control"] == "no-store"
    assert headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    ("country", "language", "expected"),
    [
        ("DE", "en", Dialect(";", ",")),
        ("PL", "en", Dialect(";", ",")),
        (None, "de", Dialect(";", ",")),
        ("CH", "de", Dialect(";", ".")),
        ("GB", "de", Dialect(",", ".")),
        (None, "en", Dialect(",", ".")),
    ],
)
def test_the_dialect_is_that_of_the_country_or_else_of_the_language(api, country, language, expected):
    api.set_account({"country": country, "document_language": language})
    with api.operating() as tx:
        assert dialect_of(tx) == expected


def test_numbers_with_a_decimal_comma_stay_numbers_and_formulas_do_not():
    rows = [["Optik; Weiß", -5, Decimal("-1250.50"), None, "-5,00"]]
    assert csv_text(["Client", "Days", "Amount", "", "Note"], rows, Dialect(";", ",")) == (
        '\ufeffClient;Days;Amount;;Note\r\n"Optik; Weiß";-5;-1250,50;;\'-5,00\r\n'
    )


def test_the_file_for_people_has_words_hours_local_times_and_names(api, visitor):
    api.set_account({"country": "DE"})
    client = api.make("/clients", name="Optik", country="DE", hourly_rate="80.50")["id"]
    with time_machine.travel("2026-11-28T23:30:00Z", tick=False):
        api.make("/time-entries", client_id=client, duration_minutes=100, date="2026-11-28")
    page = visitor.get("/console/records/time-entries")
    (link,) = [each for each in page.links if "/spreadsheet" in each]
    file = visitor.get(link)
    assert file.headers["content-disposition"].startswith('attachment; filename="time-entries-table-')
    (row,) = csv.DictReader(io.StringIO(file.html.removeprefix("\ufeff"), newline=""), delimiter=";")
    wanted = {"Client": "Optik", "Amount": "134,17", "Billable": "Yes", "Created at": "2026-11-29 00:30"}
    assert wanted == {name: row[name] for name in wanted}, row
    assert [row[name] for name in row if name.endswith(" (h)")] == ["1,6667"]
    assert not {"id", "ID", "client_id"} & row.keys()
    assert "client_id" in visitor.get(link.replace("/spreadsheet", "/csv")).html


def test_no_two_columns_of_a_file_for_people_have_the_same_heading(api, visitor):
    links = {each for each in visitor.get("/console").links if each.startswith("/console/records/")}
    lists = sorted(each for each in links if each.count("/") == 3 and "?" not in each)
    assert len(lists) == 13, lists
    for path in lists:
        heading, *_ = csv.reader(io.StringIO(visitor.get(f"{path}/spreadsheet").html.removeprefix("\ufeff")))
        assert len(heading) > 3
        assert sorted(heading) == sorted({*heading}), path


def test_files_of_documents_have_the_net_and_the_tax_at_each_rate(api, visitor):
    api.set_account({"country": "DE"})
    design, book = ({"description": "x", "unit_price": price} for price in ("100.10", "20"))
    two = [design | {"tax_rate": "19"}, book | {"tax_rate": "7"}]
    invoice = api.make("/invoices", status="sent", lines=two, currency="EUR")
    api.make("/invoices", lines=[book | {"tax_rate": "7"}], currency="EUR")
    api.post(f"/invoices/{invoice['id']}/credit-notes", {"amount": "23.80", "reason": "goodwill"})

    def rows(name):
        text = visitor.get(f"/console/records/{name}/spreadsheet?sort=id").html.removeprefix("\ufeff")
        return [
            {column: row[column] for column in row if " at " in column and "%" in column}
            for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=";")
        ]

    assert rows("invoices") == [
        {"Net at 19%": "100,10", "Tax at 19%": "19,02", "Net at 7%": "20,00", "Tax at 7%": "1,40"},
        {"Net at 19%": "", "Tax at 19%": "", "Net at 7%": "20,00", "Tax at 7%": "1,40"},
    ]
    (note,) = rows("credit-notes")
    assert sum(Decimal(each.replace(",", ".")) for each in note.values()) == Decimal("23.80")
    assert rows("clients") == [{}]


def test_files_of_invoices_have_the_vat_number_and_the_country_that_they_print(api, visitor):
    client = api.make("/clients", name="Van Dijk", country="NL", vat_number="NL004495445B01")["id"]
    line = {"description": "Design", "unit_price": "100", "tax_rate": "0"}
    for status in ("sent", "draft"):
        api.make("/invoices", client_id=client, status=status, lines=[line])
    api.patch(f"/clients/{client}", {"vat_number": "NL123456782B90"})
    text = visitor.get("/console/records/invoices/spreadsheet?sort=id").html.removeprefix("\ufeff")
    rows = csv.DictReader(io.StringIO(text, newline=""))
    assert [(row["VAT number"], row["Country"]) for row in rows] == [("NL004495445B01", "Netherlands"), ("", "")]


def test_the_tax_report_is_a_file_for_spreadsheets_of_the_country(api, visitor):
    api.set_account({"country": "DE"})
    client = api.make("/clients", currency="EUR")["id"]
    lines = [{"description": "Design", "unit_price": "100", "tax_rate": "19"}]
    api.make("/invoices", client_id=client, status="sent", issue_date="2026-02-01", lines=lines)
    text = visitor.get("/console/reports/tax/csv?from=2026-02-01&to=2026-02-28&currency=EUR").html
    rows = [*csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=";")]
    assert rows[1][:3] == ["Invoices and credit notes by rate", "19%", "1"]
    assert {"100,00", "19,00"} <= {*rows[1]}
