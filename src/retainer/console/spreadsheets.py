"""Spreadsheets: the dialect of CSV that they expect in the account's country."""

from retainer.console.typed import decimal_mark
from retainer.identity import accounts
from retainer.store.tx import Tx
from retainer.web.csv_files import Dialect

COMMA_COUNTRIES = (
    *("AL", "AM", "AR", "AT", "AZ", "BA", "BE", "BG", "BO", "BR", "BY", "CL", "CO", "CR", "CY", "CZ", "DE", "DK"),
    *("DZ", "EC", "EE", "ES", "FI", "FR", "GE", "GR", "HR", "HU", "ID", "IS", "IT", "KG", "KZ", "LT", "LU", "LV"),
    *("MA", "MD", "ME", "MK", "NL", "NO", "PL", "PT", "PY", "RO", "RS", "RU", "SE", "SI", "SK", "TN", "TR", "UA"),
    *("UY", "UZ", "VE", "VN", "XK", "ZA"),
)
"""The countries whose spreadsheets expect a decimal comma, and so semicolons between cells (CLDR)."""
SEMICOLON_COUNTRIES = ("CH", "LI")
"""The countries with a decimal point whose spreadsheets expect semicolons."""


def dialect_of(tx: Tx) -> Dialect:
    """Return the dialect of the account's country; without one, of its language."""
    account = accounts.get_account(tx)
    country, mark = account["country"], decimal_mark(account["document_language"])
    if country is not None:
        mark = "," if country in COMMA_COUNTRIES else "."
    return Dialect(";" if mark == "," or country in SEMICOLON_COUNTRIES else ",", mark)
