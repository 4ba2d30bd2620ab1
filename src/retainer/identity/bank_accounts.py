"""Bank accounts: up to one for each currency, besides the default of the settings; documents print that of theirs."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from sqlalchemy import select

from retainer.errors import Refusal
from retainer.identity import audit
from retainer.identity.accounts import get_account
from retainer.schema.identity import accounts
from retainer.store.tables import ACCOUNT
from retainer.store.tx import Tx
from retainer.values import kinds
from retainer.values.common import AccountNumber, Bic, Iban, SortCode
from retainer.values.decoding import decoder, json_text


class BankAccount(msgspec.Struct, kw_only=True, frozen=True):
    """The account to which documents in a currency are paid, in place of the default."""

    currency: Annotated[kinds.Currency, "Documents in this currency print the account."]
    iban: Annotated[Iban | None, "The check digits are verified."] = None
    bic: Bic | None = None
    bank_name: kinds.Text191 | None = None
    sort_code: Annotated[SortCode | None, "Of a British account."] = None
    account_number: Annotated[AccountNumber | None, "If clients pay by it, as in Britain."] = None


read_bank_accounts = decoder(tuple[BankAccount, ...])
"""Reads the JSON of the column `bank_accounts`."""
STORED = select(accounts.c.bank_accounts).where(accounts.c.id == ACCOUNT)


def list_bank_accounts(tx: Tx) -> tuple[BankAccount, ...]:
    (stored,) = tx.one(STORED) or ("[]",)
    return read_bank_accounts(stored)


def set_bank_account(tx: Tx, account: BankAccount) -> None:
    """Add the account for a currency, or replace it. Raises `validation_failed` if no payment could reach it."""
    if tx.readable("iban", "account_number") and not (account.iban or account.account_number):
        field, message = "iban", "Enter an IBAN, or an account number."
        if account.sort_code:
            field, message = "account_number", "Is needed with a sort code."
        tx.error(field, message)
    tx.raise_errors()
    _save(tx, [*(each for each in list_bank_accounts(tx) if each.currency != account.currency), account])


def remove_bank_account(tx: Tx, currency: str) -> None:
    """Remove the account for a currency, whose documents then print the default. Raises `not_found`."""
    found = list_bank_accounts(tx)
    others = [each for each in found if each.currency != currency]
    if len(others) == len(found):
        raise Refusal("not_found", f"There is no bank account for {currency}.")
    _save(tx, others)


def _save(tx: Tx, found: Sequence[BankAccount]) -> None:
    before = get_account(tx)
    by_currency = sorted(found, key=lambda account: account.currency)
    tx.update_columns(accounts, before["id"], {"bank_accounts": json_text(by_currency)})
    target = audit.Target("account", before["id"], before["name"])
    audit.note_changes(tx, "account changed", target, before, get_account(tx))
