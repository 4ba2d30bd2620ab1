"""The pages of the account's settings and of the logo."""

from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from retainer import job_kinds
from retainer.console.controls.control import Control, Field, FormPlace
from retainer.console.controls.plain import Choice, FileInput, Whole
from retainer.console.editing.fields import fields_of
from retainer.console.editing.form_pages import PREVIEW, SAMPLE, FormButton, FormPage, Section, stored
from retainer.console.page_context import NO_STORE, PageContext, Rehearsal, Reply
from retainer.console.pages.bank_pages import banks_in_words
from retainer.console.pages.record_pages import show_sample
from retainer.console.values import Block
from retainer.documents.logo_files import MAX_BYTES, read_logo
from retainer.errors import FieldErrors, InvalidValue, Refusal
from retainer.exchange import export_jobs
from retainer.identity import accounts, logos
from retainer.identity.accounts import AccountSettings
from retainer.identity.audit import Fields
from retainer.identity.plans import WITH_API, list_uses
from retainer.jobs.jobs import EXPORT
from retainer.kernel.http import Response
from retainer.kernel.representations import SANDBOX
from retainer.schema import identity as schema
from retainer.shared.numbering import (
    NUMBERED,
    NextNumbers,
    preview_number,
    read_format,
    set_next_numbers,
    upcoming_numbers,
)
from retainer.store.tx import Tx
from retainer.values.common import grouped
from retainer.values.kinds import read_pattern, timezones
from retainer.values.parameters import read_whole
from retainer.values.reading import read_fields
from retainer.web.forms import Form

SECTIONS = {
    "name": "Agency",
    "tax_rate": "Billing",
    "client_number_pattern": "Numbers",
    "legal_name": "Sender of documents",
    "iban": "Bank account",
    "document_language": "Documents",
    "quote_introduction_en": "Texts of new quotes",
    "invoice_introduction_en": "Texts of new invoices",
    "mail_invoice_subject_en": "Mail with invoices",
    "mail_quote_subject_en": "Mail with quotes",
    "mail_credit_note_subject_en": "Mail with credit notes",
    "require_second_factor": "Security",
}
"""The headings of the page, by the first field below each."""
IMAGE_POLICY = ("content-security-policy", SANDBOX)


class RunningNumber(Whole, frozen=True):
    """The next number of a series, typed with or without what its pattern adds."""

    def value(self, _: str, at: FormPlace, name: str, /) -> object:
        number = running_number(at.tx, at.form, accounts.get_account(at.tx), name)
        if read_whole(number) is None:
            raise InvalidValue("Enter only the running number, like 124 for 2026-124.")
        return super().value(number, at, name)


def running_number(tx: Tx, form: Form, account: Fields, name: str) -> str:
    """Return the next number of a series as typed, without what the pattern adds to it: `124` of `2026-124`."""
    text, pattern_name = form.text(name).strip(), f"{name.removeprefix('next_')}_pattern"
    with suppress(ValueError):
        pattern = read_pattern(form.text(pattern_name, account.get(pattern_name)))
        return read_format(NUMBERED[name], pattern, tx.today).read(text)
    return text


def settings_fields(tx: Tx, context: PageContext, _: None) -> Iterator[Field]:
    """Yield the fields of the settings; the series say their next numbers, and amounts fix the currency."""
    account = accounts.get_account(tx)
    controls: dict[str, Control] = {
        **{name: RunningNumber() for name in NextNumbers.__struct_fields__},
        "timezone": Choice(tuple((name, name) for name in sorted(timezones()))),
        "time_rounding_minutes": Whole("minutes"),  # people call a quarter of an hour 15 minutes here, not 0:15 hours
    }
    previews, left_out = next_numbers(tx, context.form, account), "currency" if accounts.has_amounts(tx) else ""
    declared = (*fields_of(AccountSettings, schema.accounts), *fields_of(NextNumbers, schema.accounts))
    for field in declared:
        if field.name != left_out:
            control = controls.get(field.name, field.control)
            yield field._replace(control=control, hint=previews.get(field.name, field.hint))


def values_of(tx: Tx, *_: object) -> SimpleNamespace:
    settings = SimpleNamespace(**stored(AccountSettings, accounts.get_account(tx)))
    settings.iban = settings.iban and grouped(settings.iban)
    return settings


def save(tx: Tx, context: PageContext, _: None, body: Fields) -> Reply:
    """Change the settings, or only show the next numbers or a document. Raises `validation_failed`, Rehearsed."""
    numbers = {name: body.pop(name) for name in NextNumbers.__struct_fields__ if name in body}
    errors = FieldErrors()
    changes, series = read_fields(AccountSettings, body, errors), read_fields(NextNumbers, numbers, errors)
    tx.note_unreadable(errors)
    if context.form.text("step") == PREVIEW:
        tx.raise_errors()
        raise Rehearsal(show(tx, context))
    for change, values in ((accounts.set_account, changes), (set_next_numbers, series)):
        with errors.noting():
            if values:
                change(tx, values)
    tx.raise_errors()
    if context.form.text("step") == SAMPLE:
        raise Rehearsal(show_sample(tx, context))
    return context.redirect("/settings", "Settings saved. They apply to new records and documents.")


def export(tx: Tx, context: PageContext) -> Reply:
    """Start the job that exports everything, unless another one runs, and show it: its page downloads the file."""
    try:
        job_id = export_jobs.start(tx, job_kinds.FILES[EXPORT])
    except Refusal as refusal:
        return context.redirect("/jobs", refusal.message, kind="warn")
    return context.follow_job(job_id)


def next_numbers(tx: Tx, form: Form, account: Fields) -> dict[str, str]:
    """Return the number that the next record of each series gets, by the field that decides it, as typed or stored."""
    found = {}
    for name, upcoming in upcoming_numbers(tx).items():
        chosen = read_whole(running_number(tx, form, account, name)) or 1
        pattern_name = f"{name.removeprefix('next_')}_pattern"
        if pattern_name not in account:
            found[name] = f"Next: {max(upcoming, chosen)}"
            continue
        with suppress(ValueError):
            pattern = read_pattern(form.text(pattern_name, account[pattern_name]))
            found[pattern_name] = f"Next: {preview_number(tx, NUMBERED[name], pattern, at_least=chosen)}"
    return found


def logo_fields(tx: Tx, *_: Any) -> list[Field]:
    hint = f"PNG or SVG, at most {MAX_BYTES // 1024} KB. In an SVG, text must be paths, and images embedded."
    label = "New logo" if accounts.get_account(tx)["logo_id"] else "Logo"
    return [Field("logo", label, FileInput(accept=".png,.svg,image/png,image/svg+xml", max_bytes=MAX_BYTES), hint)]


def tell_logo(tx: Tx, context: PageContext, _: None) -> Iterator[str | Block]:
    logo = logos.find_logo(tx, accounts.get_account(tx)["logo_id"])
    if logo is None:
        yield "No logo yet. Documents show the name of the agency instead."
    else:
        note = "Documents that were issued with it keep it."
        alt = f"Logo of {context.person.account_name}"
        yield Block("picture", look="logo", source="/console/settings/logo/image", alt=alt, note=note, key="")


def read_logo_file(context: PageContext) -> None:
    """Read the file of a form, unless that removes the logo. Raises `validation_failed`."""
    if context.form.text("step") != "remove":
        sent = context.form.files.get("logo")
        content = sent.stream.read() if sent else b""
        context.upload = read_logo(context.person.account_id, content, context.run_apart)


def save_logo(tx: Tx, context: PageContext, _: None, __: Fields) -> Reply:
    logos.set_logo(tx, context.upload)
    said = "Logo saved. New documents show it." if context.upload else "Logo removed."
    return context.redirect("/settings/logo", said)


SECTION = Section("Settings", "/settings")
SETTINGS = FormPage(
    *(SECTION, "Settings", "Save", save),
    fields=settings_fields,
    headings=SECTIONS | {NextNumbers.__struct_fields__[0]: SECTIONS["client_number_pattern"]},
    steps=lambda *_: [FormButton(PREVIEW, "Preview the numbers"), FormButton(SAMPLE, "Preview invoice")],
    values=values_of,
    has_preview=True,
    reads_on=True,
)
REMOVE_LOGO = FormButton("remove", "Remove the logo", is_danger=True)
LOGO = FormPage(
    *(SECTION, "Logo", "Save", save_logo, tell_logo, logo_fields),
    steps=lambda tx, *_: [REMOVE_LOGO] if accounts.get_account(tx)["logo_id"] else [],
)


def show(tx: Tx, context: PageContext) -> Reply:
    """Return the form of the settings, with what stands around it."""
    view = SETTINGS.show(tx, context)
    around = {
        "banks": banks_in_words(tx),
        "account": accounts.get_account(tx),
        "plans_with_api": WITH_API,
        "quotas": list_uses(tx),
    }
    return view._replace(template="settings", values={**view.values, **around, "look": "long-form"})


def show_image(tx: Tx, _: PageContext) -> Reply:
    logo = logos.find_logo(tx, accounts.get_account(tx)["logo_id"])
    if logo is None:
        raise Refusal("not_found", "This account has no logo.")
    headers = [("content-type", "image/png"), NO_STORE, IMAGE_POLICY, ("x-content-type-options", "nosniff")]
    return Response(200, headers, logo.content)
