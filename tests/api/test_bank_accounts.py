"""Bank accounts: a document prints that of its currency, else the default of the settings."""

import pytest
from tests.api.test_files import LINE, PDF, SETTINGS, XML, issued, set_account, text_of
from tests.databases import each_database
from tests.documents.validators import broken_rules, texts

from retainer.errors import Refusal
from retainer.identity import bank_accounts
from retainer.identity.bank_accounts import BankAccount

MEANS = "SpecifiedTradeSettlementPaymentMeans"
ACCOUNT = f"{MEANS}/ram:PayeePartyCreditorFinancialAccount/ram"
BANK = f"{MEANS}/ram:PayeeSpecifiedCreditorFinancialInstitution/ram:BICID"
BRITISH = BankAccount(currency="GBP", sort_code="20-00-00", account_number="55779911", bank_name="Barclays")
SWISS = BankAccount(currency="CHF", iban="CH9300762011623852957")


@pytest.fixture
def client(api):
    set_account(api, **SETTINGS, bic="COBADEFFXXX")
    with api.operating() as tx:
        for account in (SWISS, BRITISH):
            bank_accounts.set_bank_account(tx, account)
    return api.make("/clients", name="Bergmann Optik", country="DE", city="Ulm", currency="EUR")


@each_database
def test_a_document_prints_the_account_of_its_currency_else_the_default(api, client):
    expected = {
        "GBP": ("Sort Code 20-00-00", "Kontonummer 55779911", "Barclays"),
        "CHF": ("IBAN CH93 0076 2011 6238 5295 7",),
        "EUR": ("IBAN DE89 3704 0044 0532 0130 00", "Scannen und bezahlen"),
        "USD": ("IBAN DE89 3704 0044 0532 0130 00",),
    }
    for currency, printed in expected.items():
        path = f"/invoices/{issued(api, client, currency=currency)['id']}"
        text, xml = text_of(api.get(path, headers=PDF)), api.get(path, headers=XML).body
        assert [words for words in printed if words not in text] == []
        assert broken_rules(xml) == []
        assert ("DE89" in text, "Scannen" in text) == (currency in {"EUR", "USD"}, currency == "EUR")
        is_british = currency == "GBP"
        assert texts(xml, f"{ACCOUNT}:ProprietaryID") == ["55779911"] * is_british
        assert len(texts(xml, f"{ACCOUNT}:IBANID")) == (not is_british)
        assert texts(xml, BANK) == {"GBP": ["20-00-00"], "CHF": []}.get(currency, ["COBADEFFXXX"])


def test_issued_documents_keep_their_account(api, client):
    invoice = issued(api, client, currency="GBP")
    note = api.make(f"/invoices/{invoice['id']}/credit-notes", amount="50.00")
    quote = api.make("/quotes", client_id=client["id"], currency="GBP", lines=[LINE], status="sent")
    with api.operating() as tx:
        bank_accounts.remove_bank_account(tx, "GBP")
    for path in (f"/invoices/{invoice['id']}", f"/credit-notes/{note['id']}", f"/quotes/{quote['id']}"):
        assert "55779911" in text_of(api.get(path, headers=PDF))
    assert "55779911" not in text_of(api.get(f"/invoices/{issued(api, client, currency='GBP')['id']}", headers=PDF))


def test_a_void_invoice_has_no_british_account_either(api, client):
    invoice = issued(api, client, currency="GBP")
    api.patch(f"/invoices/{invoice['id']}", {"status": "void"})
    text = text_of(api.get(f"/invoices/{invoice['id']}", headers=PDF))
    assert ("55779911" in text, "Barclays" in text) == (False, False)


@pytest.mark.parametrize(
    ("details", "field"),
    [({}, "iban"), ({"bic": "COBADEFFXXX"}, "iban"), ({"sort_code": "20-00-00"}, "account_number")],
)
def test_an_account_that_nobody_can_pay_to_is_refused(api, details, field):
    with api.operating() as tx, pytest.raises(Refusal) as refused:
        bank_accounts.set_bank_account(tx, BankAccount(currency="GBP", **details))
    assert refused.value.members["errors"].keys() == {field}


def test_a_currency_has_one_account(api):
    with api.operating() as tx:
        for account in (BRITISH, SWISS, BankAccount(currency="GBP", account_number="1234")):
            bank_accounts.set_bank_account(tx, account)
        found = bank_accounts.list_bank_accounts(tx)
    assert [(each.currency, each.account_number) for each in found] == [("CHF", None), ("GBP", "1234")]
