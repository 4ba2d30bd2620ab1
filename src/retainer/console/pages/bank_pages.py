"""The page of a bank account for a currency, in addition to the default one of the settings."""

from typing import Any

from retainer.console.editing.calls import new_of
from retainer.console.editing.fields import fields_of
from retainer.console.editing.form_pages import FormButton, FormPage, Section
from retainer.console.editing.sheet import Sheet
from retainer.console.page_context import PageContext, Reply
from retainer.identity import bank_accounts
from retainer.identity.audit import Fields
from retainer.identity.bank_accounts import BankAccount
from retainer.schema.identity import accounts
from retainer.store.tx import Tx
from retainer.values.common import grouped
from retainer.web.forms import Form

TOLD = "Quotes, invoices and credit notes in this currency print this account. Issued ones keep what they said."


def banks_in_words(tx: Tx) -> dict[str, str]:
    """Return the details of each account by its currency."""
    found = {}
    for each in bank_accounts.list_bank_accounts(tx):
        details = (each.sort_code, each.account_number, each.iban and grouped(each.iban), each.bank_name)
        found[each.currency] = " · ".join(filter(None, details))
    return found


def find(tx: Tx, context: PageContext) -> BankAccount | None:
    """Return the account that the form or the link is about; None for a new one."""
    currency = context.form.text("currency") or context.query.text("currency")
    return next((each for each in bank_accounts.list_bank_accounts(tx) if each.currency == currency), None)


def sheet_of(tx: Tx, context: PageContext, _: None) -> Sheet:
    account = find(tx, context)
    stored = {name: getattr(account, name) or "" for name in BankAccount.__struct_fields__} if account else {}
    stored |= {"iban": grouped(stored["iban"])} if stored else {}
    return Sheet(tx, context, fields_of(BankAccount, accounts), preset=Form([*stored.items()]))


def save(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    """Save the account, or remove it. Raises `validation_failed`, `not_found`."""
    if context.form.text("step") == "remove":
        bank_accounts.remove_bank_account(tx, context.form.text("currency"))
        return context.redirect("/settings", "Bank account removed. New documents print the default one.", kind="warn")
    account = new_of(tx, BankAccount, body)
    bank_accounts.set_bank_account(tx, account)
    return context.redirect("/settings", f"Bank account saved. New documents in {account.currency} print it.")


def steps(tx: Tx, context: PageContext, _: Any) -> list[FormButton]:
    return [FormButton("remove", "Remove the account", is_danger=True)] if find(tx, context) else []


BANK_ACCOUNT = FormPage(
    *(Section("Settings", "/settings"), "Bank account for a currency", "Save", save, lambda *_: [TOLD]),
    sheet_of=sheet_of,
    steps=steps,
    reads_on=True,
)
