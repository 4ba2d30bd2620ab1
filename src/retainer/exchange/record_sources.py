"""Sources of clients, contacts and projects: the columns that files of other programs and of Retainer have.

One source reads all of them: Harvest, Toggl Track, Clockify, Kimai, FreshBooks, Invoice Ninja and the lists of the
console call the same things by few names.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from retainer.exchange.columns import CellFields, ImportSource

CLIENT = ("client name", "customer", "company", "organization", "organisation", "kunde", "firma", "kundenname")
FIRST_NAME, LAST_NAME = ("first name", "vorname"), ("last name", "nachname", "surname")
EMAIL = ("e-mail", "email address", "mail", "e-mail-adresse")
NOTES = ("note", "notizen", "notiz", "bemerkung")
CLIENTS: Mapping[str, tuple[str, ...]] = {
    "external_id": (),
    "name": ("client", *CLIENT),
    "number": ("client number", "customer number", "account", "kundennummer"),
    "status": (),
    "first_name": FIRST_NAME,
    "last_name": LAST_NAME,
    "email": EMAIL,
    "invoice_email": ("email for invoices", "billing email", "e-mail für rechnungen", "rechnungs-e-mail"),
    "phone": ("telephone", "office phone", "telefon"),
    "website": ("homepage", "webseite"),
    "address_line1": ("address line 1", "street", "billing street", "address", "straße", "strasse", "adresse"),
    "address_line2": ("address line 2", "apt/suite", "billing apt/suite", "adresszusatz"),
    "city": ("billing city", "town", "ort", "stadt"),
    "region": ("province/state", "state/province", "state", "billing state/province", "bundesland"),
    "postal_code": ("zip", "zip code", "postcode", "billing postal code", "plz", "postleitzahl"),
    "country": ("billing country", "land"),
    "vat_number": ("vat id", "vat-id", "ust-idnr.", "ust-idnr", "ust-id", "umsatzsteuer-id"),
    "registration_number": ("id number", "handelsregisternummer"),
    "currency": ("währung",),
    "hourly_rate": ("billable rate", "default rate", "stundensatz"),
    "tax_rate": ("tax rate (%)", "steuersatz", "steuersatz (%)"),
    "payment_terms_days": ("payment terms", "zahlungsziel"),
    "language": ("sprache",),
    "notes": ("private notes", "public notes", *NOTES),
}
CONTACTS: Mapping[str, tuple[str, ...]] = {
    "external_id": (),
    "client": CLIENT,
    "first_name": FIRST_NAME,
    "last_name": LAST_NAME,
    "email": EMAIL,
    "phone": ("office phone", "telephone", "telefon"),
    "mobile": ("mobile phone", "mobil", "handy"),
    "job_title": ("title", "position", "funktion"),
    "role": ("rolle",),
    "is_primary": ("primary contact", "hauptkontakt"),
    "status": (),
    "notes": NOTES,
}
PROJECTS: Mapping[str, tuple[str, ...]] = {
    "external_id": (),
    "client": CLIENT,
    "name": ("project", "project name", "projekt", "projektname"),
    "code": ("project code", "project number", "short name", "projektnummer", "kürzel"),
    "description": ("project notes", "notes", "beschreibung", *NOTES),
    "status": (),
    "billing_type": ("abrechnung",),
    "hourly_rate": ("billable rate", "stundensatz"),
    "fixed_fee": ("fixed price", "festpreis"),
    "retainer_amount": (),
    "budget_amount": (),
    "budget_minutes": (),
    "budget_hours": ("budget of time (h)", "estimated (h)", "stundenbudget"),
    "start_date": ("start", "startdatum", "beginn"),
    "due_date": ("end date", "due", "enddatum", "ende", "fällig"),
    "manager": ("project manager", "projektleiter", "projektleitung"),
}
WORDS = MappingProxyType(
    {
        "aktiv": "active",
        "inaktiv": "inactive",
        "archiviert": "archived",
        "interessent": "prospect",
        "geplant": "planned",
        "pausiert": "on_hold",
        "abgeschlossen": "completed",
        "done": "completed",
        "english": "en",
        "englisch": "en",
        "german": "de",
        "deutsch": "de",
        "technik": "technical",
        "rechnungen": "billing",
        "not_billable": "non_billable",
    }
)
"""Words for values of enumerations; others are the values themselves, as people write them."""
CHOICES = frozenset({"status", "language", "role", "billing_type"})
FIELDS = CellFields(
    days=("start_date", "due_date"),
    numbers=(
        *("hourly_rate", "tax_rate", "fixed_fee", "retainer_amount", "budget_amount", "budget_minutes"),
        "budget_hours",
    ),
    truths=("is_primary",),
    amounts=("hourly_rate", "fixed_fee", "retainer_amount", "budget_amount"),
)


class Records(NamedTuple):
    """What a file can have: the name of its table, and its source."""

    table: str
    source: ImportSource


def _source(columns: Mapping[str, tuple[str, ...]], needs: tuple[str, ...], *ways: tuple[str, ...]) -> ImportSource:
    """Return the source of these columns; each has its field as a heading, too, with or without underscores."""
    headings = {name: (name, name.replace("_", " "), *others) for name, others in columns.items()}
    return ImportSource("csv", "a CSV file", headings, needs, (tuple((each,) for each in ways[0]),) if ways else ())


CLIENT_FILES = Records("clients", _source(CLIENTS, ("name",)))
CONTACT_FILES = Records("external_contacts", _source(CONTACTS, ("client",), ("first_name", "last_name", "email")))
PROJECT_FILES = Records("projects", _source(PROJECTS, ("name",)))
