"""The settings of an account: all errors at once, bank details, the currency, and the audit of every change."""

import json
from decimal import Decimal

import pytest

from retainer.errors import FieldErrors, Refusal
from retainer.identity import accounts, audit
from retainer.identity.accounts import AccountSettings
from retainer.identity.audit import AuditFilter
from retainer.schema.billing import credit_notes, invoices
from retainer.schema.crm import clients
from retainer.shared.numbering import preview_number
from retainer.values.common import grouped, read_bic, read_iban
from retainer.values.reading import read_fields


def read(**sent):
    errors = FieldErrors()
    values = read_fields(AccountSettings, sent, errors)
    return values, errors


def test_all_errors_of_the_settings_are_found_at_once():
    _, errors = read(
        name=None,
        currency="EURO",
        timezone="Mars",
        tax_rate="101",
        payment_terms_days=366,
        invoice_number_pattern="INV",
        country="XX",
        email="nobody",
        website="agency",
        iban="DE00",
        bic="A",
        document_language="fr",
        document_color="blue",
        working_weekdays=["mon", "noon"],
    )
    assert set(errors) >= {
        *("name", "currency", "timezone", "tax_rate", "payment_terms_days", "invoice_number_pattern", "country"),
        *("email", "website", "iban", "bic", "document_language", "document_color", "working_weekdays.1"),
    }


@pytest.mark.parametrize(
    "number", ["DE89370400440532013000", "de89 3704 0044 0532 0130 00", "GB82-WEST-1234-5698-7654-32"]
)
def test_a_right_iban_is_stored_without_spaces(number):
    assert " " not in read_iban(number)
    assert read_iban(grouped(read_iban(number))) == read_iban(number)


@pytest.mark.parametrize(
    "number",
    [*("DE88370400440532013000", "DE8937040044053201300", "XX89370400440532013000", "", "DE", "é" * 22), 7, None],
)
def test_a_wrong_iban_is_refused(number):
    with pytest.raises(ValueError):  # its readers say how
        read_iban(number)


def test_wrong_check_digits_are_named():
    _, errors = read(iban="DE88370400440532013000")
    assert "check digits" in errors["iban"][0]


def test_a_bic_has_8_or_11_characters():
    assert read_bic("cobadeff xxx") == "COBADEFFXXX"
    for wrong in ("COBADEFFX", "C0BADEFF", "", 8):
        with pytest.raises(ValueError):
            read_bic(wrong)


def test_every_changed_field_is_in_the_audit_log(api):
    values, errors = read(legal_name="North GmbH", iban="DE89370400440532013000", tax_rate="19", country="DE")
    assert errors == {}
    api.set_account(values)
    with api.operating() as tx:
        entry = audit.list_entries(tx, AuditFilter(action="account changed")).entries[0]
        account = accounts.get_account(tx)
    assert entry.after == {
        "legal_name": "North GmbH",
        "iban": "DE89370400440532013000",
        "tax_rate": "19",
        "country": "DE",
    }
    assert entry.before == dict.fromkeys(entry.after)
    assert json.loads(json.dumps(account)) == account


def test_without_a_tax_rate_lines_have_none_and_with_one_they_have_it(api):
    line = {"lines": [{"description": "Design", "unit_price": "100"}]}
    assert api.make("/invoices", **line)["lines"][0]["tax_rate"] == "0"
    api.set_account({"tax_rate": Decimal(19)})
    assert api.make("/invoices", **line)["lines"][0]["tax_rate"] == "19"


def test_the_currency_can_change_until_there_is_an_amount(api):
    api.set_account({"hourly_rate": Decimal("95.50")})
    api.set_account({"currency": "USD"})
    with api.operating() as tx:
        assert accounts.get_account(tx)["hourly_rate"] == "95.50"
    assert api.make("/clients")["currency"] == "USD"
    api.set_account({"currency": "EUR"})
    api.make("/expenses")
    with pytest.raises(Refusal, match="Stays EUR"):
        api.set_account({"currency": "USD"})


def test_a_currency_without_decimals_refuses_a_rate_that_has_some(api):
    api.set_account({"hourly_rate": Decimal("95.50")})
    with pytest.raises(Refusal, match="hourly_rate"):
        api.set_account({"currency": "JPY"})


def test_a_preview_is_the_number_that_the_next_record_gets(api):
    with api.operating() as tx:
        expected = preview_number(tx, clients, "C-{0000}")
        assert preview_number(tx, credit_notes, "G{YYYY}/{00}") == f"G{tx.today[:4]}/01"
    api.make("/clients", number="C-0002")
    assert api.make("/clients")["number"] == expected == "C-0001"
    with api.operating() as tx:
        assert preview_number(tx, clients, "C-{0000}") == "C-0003"
        assert preview_number(tx, invoices, "INV-{YYYY}-{0000}") == f"INV-{tx.today[:4]}-0001"
    assert api.make("/clients")["number"] == "C-0003"


@pytest.mark.parametrize("zone", ["localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"])
def test_files_beside_the_iana_time_zones_are_no_time_zones(zone):
    assert "timezone" in read(timezone=zone)[1]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "UTC", "America/Argentina/Ushuaia", "Asia/Calcutta"])
def test_iana_time_zones_are_time_zones(zone):
    assert read(timezone=zone) == ({"timezone": zone}, {})
