"""The sums of filtered lists, with `totals=true`."""

from collections import defaultdict
from decimal import Decimal

import pytest
from tests.factories import SENT

from retainer.rollups import list_sums


@pytest.fixture
def work(api):
    """Time, expenses and invoices of clients in two currencies."""
    clients = [api.make("/clients", currency=currency)["id"] for currency in ("EUR", "JPY")]
    for client_id in clients:
        for minutes, billable in ((30, True), (45, True), (60, False)):
            api.make(
                "/time-entries", client_id=client_id, duration_minutes=minutes, billable=billable, hourly_rate="100"
            )
        for amount in ("119", "-19", "7"):
            api.make("/expenses", client_id=client_id, amount=amount, tax_rate="19", category="travel")
        invoice = api.make("/invoices", client_id=client_id, **SENT)
        api.pay(invoice["id"], amount="100")
        api.make("/invoices", client_id=client_id, lines=SENT["lines"])
    return clients


def expected(rows, fields):
    """The sums of records by currency, added up in plain Python."""
    found = defaultdict(lambda: dict.fromkeys(fields, Decimal(0)))
    for row in rows:
        row["billable_minutes"] = row.get("duration_minutes", 0) if row.get("billable") else 0
        for field in fields:
            found[row["currency"]][field] += Decimal(row[field] or 0)
    return {currency: found[currency] for currency in sorted(found)}


def totals(api, path, **query):
    meta = api.get(path, query | {"totals": "true", "per_page": 1}).json["meta"]
    shown = {row.pop("currency"): row for row in meta["totals"]}
    assert list(shown) == sorted(shown)
    return {currency: {name: Decimal(value) for name, value in row.items()} for currency, row in shown.items()}


@pytest.mark.parametrize(
    ("path", "fields", "filters"),
    [
        (
            "/time-entries",
            ("duration_minutes", "billable_minutes", "amount"),
            ({}, {"billable": "true"}, {"user_id": "me"}, {"date_to": "2000-01-01"}),
        ),
        ("/expenses", ("amount", "net_amount", "billable_amount"), ({}, {"q": "none"}, {"amount_min": "0"})),
        (
            "/invoices",
            ("subtotal", "tax_total", "total", "amount_paid", "amount_credited", "balance_due"),
            ({}, {"status": "open"}, {"paid_date_from": "2000-01-01"}),
        ),
    ],
)
def test_totals_are_the_sums_of_all_records_that_match(api, work, path, fields, filters):
    for query in (*filters, {"client_id": work[0]}, {"client_id": f"{work[0]},{work[1]}"}):
        rows = api.get(path, query | {"per_page": 100}).data
        assert totals(api, path, **query) == expected(rows, fields), query


def test_only_a_request_for_totals_gets_them_on_every_page(api, work):
    assert "totals" not in api.get("/expenses").json["meta"]
    assert "totals" not in api.get("/expenses", {"totals": "false"}).json["meta"]
    first = api.get("/expenses", {"totals": "true", "per_page": 2}).json
    assert "totals=true" in first["links"]["next"]
    second = api.get("/expenses", {"totals": "true", "per_page": 2, "page": 2}).json
    assert second["meta"]["totals"] == first["meta"]["totals"] != []
    assert api.get("/clients", {"totals": "true"}).code == "unknown_parameter"
    assert api.get("/expenses", {"totals": "yes"}).errors.keys() == {"totals"}


def test_an_empty_list_has_no_totals(api):
    assert api.get("/invoices", {"totals": "true"}).json["meta"]["totals"] == []


def test_too_many_records_are_refused_with_advice_unless_totals_are_stored(api, work, monkeypatch):
    monkeypatch.setattr(list_sums, "MAX_SUMMED", 5)
    (message,) = api.get("/expenses", {"totals": "true"}).errors["totals"]
    assert message.startswith("Sums are computed for up to 5 records; 6 match.")
    assert "date_from and date_to" in message
    assert totals(api, "/expenses", client_id=work[0])
    monkeypatch.setattr(list_sums, "MAX_SUMMED", 3)
    assert api.get("/time-entries", {"totals": "true", "billable": "true"}).errors.keys() == {"totals"}
    assert totals(api, "/time-entries")["EUR"]["duration_minutes"] == 135
    (message,) = api.get("/invoices", {"totals": "true"}).errors["totals"]
    assert "issue_date_from and issue_date_to" in message
